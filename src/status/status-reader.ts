import { readdirSync, rmSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { readRegularFile } from "../regular-file.js";
import { createLiveness } from "../telemetry/liveness.js";
import { parseWorkerId } from "../telemetry/worker-id.js";
import { refuseForeignFolder } from "./own-folder.js";
import { defaultStatusFolder, STATUS_FILE_ENDING, type StatusFile } from "./status-file.js";

export interface FoundStatus {
  /** Of processes that live, oldest first. */
  readonly live: readonly StatusFile[];
  /** Of processes that ended without taking their file away; it is gone now. */
  readonly stale: readonly StatusFile[];
}

/** A scope of a thousand sources takes half of this. */
const MAX_BYTES = 4 * 1_024 * 1_024;
/** Whether a process of another host lives nobody can say; its file is believed for so long. */
const FOREIGN_STALE_MS = 60_000;

/** Everything that processes of this user show in a folder. Throws when the folder is somebody else's. */
export function readStatus(folder: string, scope: string | undefined, nowMs: number): FoundStatus {
  if (folder === defaultStatusFolder()) refuseForeignFolder(folder);
  const isGone = createLiveness({ nowMs, staleAfterMs: FOREIGN_STALE_MS });
  const live: StatusFile[] = [];
  const stale: StatusFile[] = [];
  for (const name of namesIn(folder)) {
    const path = join(folder, name);
    const status = parsed(path);
    if (status === null || (scope !== undefined && status.scope !== scope)) continue;
    if (!isGone(status.worker, status.writtenAtMs)) {
      live.push(status);
      continue;
    }
    stale.push(status);
    if (parseWorkerId(status.worker)?.host === hostname()) clean(path);
  }
  return { live: live.sort((a, b) => a.startedAtMs - b.startedAtMs), stale };
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).filter((name) => name.endsWith(STATUS_FILE_ENDING));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

/** null = none of ours, or gone this very moment. */
function parsed(path: string): StatusFile | null {
  try {
    const status = JSON.parse(readRegularFile(path, MAX_BYTES)) as StatusFile;
    return isStatus(status) ? status : null;
  } catch {
    return null;
  }
}

function isStatus(status: Partial<StatusFile> | null): status is StatusFile {
  return (
    status?.version === 1 &&
    typeof status.scope === "string" &&
    typeof status.worker === "string" &&
    Number.isFinite(status.writtenAtMs) &&
    Array.isArray(status.snapshot?.sources) &&
    typeof status.snapshot.waiting === "object"
  );
}

function clean(path: string): void {
  for (const left of [path, `${path}.tmp`]) rmSync(left, { force: true });
}
