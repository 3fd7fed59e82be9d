import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LimitConfig } from "../domain/source.js";
import type { WaitingSummary } from "../governance/waiting-summary.js";
import type { ScopeSnapshot } from "../ports/governor.js";

/**
 * Live state of a scope in one process, as a file that `polygateway status` reads (spec 08). With limits in memory nobody
 * else knows it.
 */
export interface StatusFile {
  readonly version: 1;
  readonly scope: string;
  /** host:pid:random. */
  readonly worker: string;
  /** Where the process works, so that a person recognises it. */
  readonly folder: string;
  /** Wall clock, epoch ms. */
  readonly startedAtMs: number;
  readonly writtenAtMs: number;
  /** No call was under way: nothing is written again before the next one. */
  readonly idle: boolean;
  /** By source; 0 = that gate is off. */
  readonly limits: Readonly<Record<string, StatusLimits>>;
  readonly global: StatusLimits;
  readonly snapshot: StatusSnapshot;
}

export type StatusLimits = Pick<LimitConfig, "maxConcurrency" | "rpm" | "tpm" | "limitRule">;

export interface StatusSnapshot extends ScopeSnapshot {
  readonly waiting: WaitingSummary;
}

export const STATUS_FILE_ENDING = ".json";

/** One a process and queue: `LLM-4242-k3j2x1.json`. */
export function statusFileName(scope: string, worker: string): string {
  const [random = "", pid = ""] = worker.split(":").reverse();
  return `${scope}-${pid}-${random}${STATUS_FILE_ENDING}`;
}

/** Of this user alone, and the same from every working folder. */
export function defaultStatusFolder(): string {
  const user = process.getuid?.();
  return join(tmpdir(), user === undefined ? "polygateway" : `polygateway-${user}`);
}
