import { hostname } from "node:os";
import type { Runtime } from "../ports/runtime.js";

export interface WorkerId {
  readonly host: string;
  readonly pid: number;
}

const RANDOM_RANGE = 36 ** 6;

/** host:pid:random of this process, as it stands in the column `worker`. */
export function createWorkerId(runtime: Pick<Runtime, "random">): string {
  const random = Math.floor(runtime.random() * RANDOM_RANGE)
    .toString(36)
    .padStart(6, "0");
  return `${hostname()}:${process.pid}:${random}`;
}

/** null for text that no worker wrote. The host may contain colons. */
export function parseWorkerId(worker: string): WorkerId | null {
  const match = /^(.+):(\d{1,10}):[^:]+$/.exec(worker);
  return match === null ? null : { host: match[1] as string, pid: Number(match[2]) };
}
