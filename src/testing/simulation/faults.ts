/** A way a source is broken for a while; `toMs` may be Infinity. */
export type Fault =
  /** A share of the requests is accepted and then never answered. */
  | { readonly kind: "half_dead"; readonly fromMs: number; readonly toMs: number; readonly hangShare: number }
  | { readonly kind: "dead_key"; readonly fromMs: number; readonly toMs: number }
  | { readonly kind: "quota"; readonly fromMs: number; readonly toMs: number }
  /** Every request is refused with 503; answers in progress go on, or are cut too. */
  | { readonly kind: "outage"; readonly fromMs: number; readonly toMs: number; readonly cutsAnswers: boolean }
  /** The first `brokenMs` of every period: 503. Answers in progress go on. */
  | {
      readonly kind: "flapping";
      readonly fromMs: number;
      readonly toMs: number;
      readonly periodMs: number;
      readonly brokenMs: number;
    };

function isActive(fault: Fault, atMs: number): boolean {
  if (atMs < fault.fromMs || atMs >= fault.toMs) return false;
  return fault.kind !== "flapping" || (atMs - fault.fromMs) % fault.periodMs < fault.brokenMs;
}

export function activeFault(faults: readonly Fault[], atMs: number): Fault | null {
  for (const fault of faults) if (isActive(fault, atMs)) return fault;
  return null;
}

/** When an answer in progress from `fromMs` to `toMs` is cut; null = it isn't. */
export function cutMomentMs(faults: readonly Fault[], fromMs: number, toMs: number): number | null {
  for (const fault of faults) {
    if (fault.kind !== "outage" || !fault.cutsAnswers) continue;
    if (fault.fromMs > fromMs && fault.fromMs < toMs) return fault.fromMs;
  }
  return null;
}
