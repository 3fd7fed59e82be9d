import { readFileSync, statSync } from "node:fs";
import { ConfigError, type ConfigProblem } from "../errors.js";
import { unreadable } from "./dotenv.js";
import { printable } from "./values.js";

/** No configuration is this long, and parsing is not free. */
const MAX_BYTES = 512 * 1_024;

/** The text of a configuration file, without a BOM. Throws ConfigError when it can't be read or is no UTF-8 text. */
export function readConfigText(path: string): string {
  const bytes = readBytes(path);
  if (bytes.length > MAX_BYTES) throw refused(path, "is larger than 512 KiB");
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw refused(path, "is not UTF-8 text");
  }
  if (text.includes("\0")) throw refused(path, "has zero bytes, so it is no text");
  return text;
}

function readBytes(path: string): Uint8Array {
  try {
    const found = statSync(path);
    // A device may never end.
    if (found.isCharacterDevice() || found.isBlockDevice()) throw new Error("a device");
    if (found.size > MAX_BYTES) throw refused(path, "is larger than 512 KiB");
    return readFileSync(path);
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    throw new ConfigError([shortened(unreadable(path, error))]);
  }
}

function shortened(problem: ConfigProblem): ConfigProblem {
  return { ...problem, key: printable(problem.key) };
}

function refused(path: string, problem: string): ConfigError {
  return new ConfigError([{ key: printable(path), problem, remedy: "Give the path of a YAML or JSON configuration." }]);
}
