import { spawn, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Finished } from "../cli-harness.js";

const CLI = fileURLToPath(new URL("../../dist/cli.js", import.meta.url));

/** For scripts that are files of their own; `runShell` puts it first by itself. */
export const DEFINE_COMMAND = `polygateway() { "${process.execPath}" "${CLI}" "$@"; }`;

export interface ShellOptions {
  readonly folder: string;
  readonly env?: Record<string, string>;
  /** Runs as this user and group; needs the rights of root. */
  readonly uid?: number;
}

/** Runs a bash script in which `polygateway` is the built command, for what only a shell can set up: pipes, limits, mounts. */
export function runShell(script: string, { folder, env, uid }: ShellOptions): Promise<Finished> {
  const child = spawn("bash", ["-c", `${DEFINE_COMMAND}\n${script}`], {
    cwd: folder,
    env: { PATH: process.env.PATH, HOME: folder, TMPDIR: folder, ...env },
    stdio: ["ignore", "pipe", "pipe"],
    ...(uid === undefined ? {} : { uid, gid: uid }),
  });
  let stdout = "";
  let stderr = "";
  child.stdout.on("data", (chunk) => {
    stdout += chunk;
  });
  child.stderr.on("data", (chunk) => {
    stderr += chunk;
  });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, stdout, stderr }));
  });
}

const NOBODY = 65_534;

/** File permissions say nothing to root: the user to be instead. undefined = this one is good; null = there is none. */
export function userWithoutRights(): number | undefined | null {
  if (process.getuid?.() !== 0) return undefined;
  const probe = spawnSync(process.execPath, [CLI, "--version"], { uid: NOBODY, gid: NOBODY, cwd: "/" });
  if (probe.status === 0) return NOBODY;
  console.log("skipped: this runs as root, and another user can't reach the built command, so no file is read-only");
  return null;
}

/** Enters a mount namespace of its own, so that a small disk is gone with the process, whatever happens. */
export const OWN_MOUNTS = "unshare --map-root-user --mount";

export function canMount(): boolean {
  const probe = spawnSync("bash", ["-c", `${OWN_MOUNTS} mount -t tmpfs -o size=64k none /mnt`]);
  if (probe.status === 0) return true;
  console.log("skipped: no file system can be mounted here, so no disk is full (a file-size limit is tested)");
  return false;
}
