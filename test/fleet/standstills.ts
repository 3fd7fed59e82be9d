/** A time in which this process was held up, so that it wrote into its ledgers later than things happened (epoch ms). */
export interface Standstill {
  readonly fromMs: number;
  readonly toMs: number;
}

const LOOK_EVERY_MS = 50;
/** Less is covered by what the judges allow anyway. */
const LEAST_MS = 250;

/** Notes when the witness itself was held up, as by a busy machine: what it saw then is older than it says. */
export function watchStandstills(): { readonly seen: Standstill[]; stop(): void } {
  const seen: Standstill[] = [];
  let lastMs = Date.now();
  const timer = setInterval(() => {
    const nowMs = Date.now();
    if (nowMs - lastMs > LEAST_MS) seen.push({ fromMs: lastMs, toMs: nowMs });
    lastMs = nowMs;
  }, LOOK_EVERY_MS);
  return { seen, stop: () => clearInterval(timer) };
}

/** When that may have happened at the earliest, seen at this moment. */
export function happenedSince(seen: readonly Standstill[], atMs: number): number {
  const held = seen.find(({ fromMs, toMs }) => atMs >= fromMs && atMs <= toMs + LOOK_EVERY_MS);
  return held?.fromMs ?? atMs;
}
