import { spawnSync } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

/** A program that tests bring up by themselves, and the Debian package that brings it. */
export interface ServiceBinary {
  readonly name: string;
  readonly debianPackage: string;
  /** Where Debian puts it when it isn't on PATH. */
  readonly folders: readonly string[];
}

/** In CI nothing is skipped: what can't be started fails the run. */
export const IN_CI = isOn(process.env.CI);

const MAY_INSTALL = IN_CI || isOn(process.env.PGW_INSTALL_SERVICES);

function isOn(value: string | undefined): boolean {
  return value !== undefined && !["", "0", "false"].includes(value.toLowerCase());
}

/** The program's path, or null. */
export function findBinary({ name, folders }: ServiceBinary): string | null {
  const places = [...(process.env.PATH ?? "").split(delimiter).filter((folder) => folder !== ""), ...folders];
  return places.map((folder) => join(folder, name)).find(isExecutable) ?? null;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * The program's path. A missing one is installed only where nobody's machine is changed unasked: in CI, or with
 * PGW_INSTALL_SERVICES=1. Otherwise the error names the one command.
 */
export function serviceBinary(binary: ServiceBinary, mayInstall = MAY_INSTALL): string {
  const found = findBinary(binary);
  if (found !== null) return found;
  const command = `apt-get install -y ${binary.debianPackage}`;
  if (!mayInstall) {
    throw new Error(`${binary.name} was not found. Install it: ${command} (or set PGW_INSTALL_SERVICES=1)`);
  }
  const why = install(command);
  const installed = findBinary(binary);
  if (installed !== null) return installed;
  throw new Error(`${binary.name} was not found, and "${command}" did not bring it: ${why}`);
}

function install(command: string): string {
  const asRoot = process.getuid?.() === 0 ? "" : "sudo -n ";
  const lines = `${asRoot}apt-get update -q && DEBIAN_FRONTEND=noninteractive ${asRoot}${command}`;
  const { error, stderr, status } = spawnSync("sh", ["-c", lines], { encoding: "utf8", timeout: 300_000 });
  return error?.message ?? (stderr.trim().split("\n").slice(-3).join(" ") || `it ended with ${status}`);
}
