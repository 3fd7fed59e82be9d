import { readFileSync } from "node:fs";

/** `start` tells a process from a later one with the same pid; null where the system doesn't say. */
export type ProcessLife = { readonly alive: false } | { readonly alive: true; readonly start: string | null };

/** Whether a process of this host lives. A zombie counts as gone: it holds nothing any more. */
export function processLife(pid: number): ProcessLife {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // EPERM: it lives, under another user.
    if ((error as NodeJS.ErrnoException).code !== "EPERM") return { alive: false };
  }
  return readProc(pid) ?? { alive: true, start: null };
}

/** Linux: state is field 3 and the start time, in ticks since boot, field 22 of /proc/PID/stat (proc(5)). */
function readProc(pid: number): ProcessLife | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The command in field 2 may hold spaces and parentheses.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (fields[0] === "Z" || fields[0] === "X") return { alive: false };
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    return { alive: true, start: `${boot}:${fields[19]}` };
  } catch {
    return undefined;
  }
}
