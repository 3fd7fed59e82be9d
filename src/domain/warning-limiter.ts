const WARNING_INTERVAL_MS = 60_000;

/** null = say nothing now; else how many were kept back since the last one that was said. */
export type WarningLimiter = (component: string, kind: string, nowMs: number) => { readonly suppressed: number } | null;

/** One warning per (component, kind) and interval, so that a broken store doesn't flood the log (spec 02 §2). */
export function createWarningLimiter(intervalMs = WARNING_INTERVAL_MS): WarningLimiter {
  const lastSaid = new Map<string, { atMs: number; suppressed: number }>();
  return (component, kind, nowMs) => {
    const key = `${component}\0${kind}`;
    const entry = lastSaid.get(key);
    if (entry !== undefined && nowMs - entry.atMs < intervalMs) {
      entry.suppressed += 1;
      return null;
    }
    lastSaid.set(key, { atMs: nowMs, suppressed: 0 });
    return { suppressed: entry?.suppressed ?? 0 };
  };
}
