import { execFileSync } from "node:child_process";
import { accessSync, constants, existsSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";

/** Programs that a test needs from outside, and the Debian package that has them. */
export interface WantedBinaries {
  readonly names: readonly string[];
  readonly debianPackage: string;
  /** Where Debian puts what is not on PATH; a `*` stands for one folder name, the highest version first. */
  readonly folders?: readonly string[];
}

export type FoundBinaries =
  | { readonly ok: true; readonly paths: Readonly<Record<string, string>> }
  | { readonly ok: false; readonly reason: string };

/** Whether a service that can't be started fails the run instead of leaving tests out. */
export const servicesAreRequired = (env = process.env): boolean => isOn(env.CI) || isOn(env.PGW_INSTALL_SERVICES);

function isOn(value: string | undefined): boolean {
  return value !== undefined && !["", "0", "false", "off", "no"].includes(value.toLowerCase());
}

/**
 * Finds programs on PATH or in Debian's folders. Missing ones are installed only where `CI` is set or
 * PGW_INSTALL_SERVICES=1; otherwise the reason names the one command.
 */
export function findOrInstall(wanted: WantedBinaries): FoundBinaries {
  const found = find(wanted);
  if (found !== undefined) return { ok: true, paths: found };
  const command = `apt-get install -y --no-install-recommends ${wanted.debianPackage}`;
  const missing = `${wanted.names.join(", ")} not found on PATH${wanted.folders ? ` or in ${wanted.folders.join(", ")}` : ""}`;
  if (!servicesAreRequired()) return { ok: false, reason: `${missing}. Install it: ${command}` };
  try {
    install(wanted.debianPackage);
  } catch (error) {
    return { ok: false, reason: `${missing}, and \`${command}\` failed: ${firstLine(error)}` };
  }
  const installed = find(wanted);
  if (installed !== undefined) return { ok: true, paths: installed };
  return { ok: false, reason: `${missing}, although ${wanted.debianPackage} is installed` };
}

function find({ names, folders = [] }: WantedBinaries): Record<string, string> | undefined {
  const onPath = (process.env.PATH ?? "").split(delimiter).filter((folder) => folder !== "");
  // One folder for all of them: programs of two versions don't go together.
  for (const folder of [...onPath, ...folders.flatMap(expand)]) {
    const paths = names.map((name) => [name, join(folder, name)] as const);
    if (paths.every(([, path]) => isProgram(path))) return Object.fromEntries(paths);
  }
  return undefined;
}

function expand(pattern: string): string[] {
  const [before = "", after] = pattern.split("*");
  if (after === undefined) return [pattern];
  if (!existsSync(before)) return [];
  const versions = readdirSync(before).sort((a, b) => Number(b) - Number(a));
  return versions.map((version) => `${before}${version}${after}`);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function install(debianPackage: string): void {
  const asRoot = process.getuid?.() === 0 ? [] : ["sudo", "-n"];
  const run = (...args: string[]) => {
    // Files of tests that need different packages begin together; of two apt-get at once one fails.
    const inTurn = ["flock", join(tmpdir(), "polygateway-tests-apt.lock"), "apt-get", "-o", "DPkg::Lock::Timeout=120"];
    const [program = "", ...rest] = [...asRoot, "env", "DEBIAN_FRONTEND=noninteractive", ...inTurn, ...args];
    execFileSync(program, rest, { stdio: ["ignore", "ignore", "pipe"], timeout: 600_000 });
  };
  run("update");
  run("install", "-y", "--no-install-recommends", debianPackage);
}

function firstLine(error: unknown): string {
  return String(error instanceof Error ? error.message : error).split("\n", 1)[0] ?? "";
}
