/** Numbers, lengths of time and money as people read them. */

const COUNT = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

export function formatCount(value: number): string {
  return COUNT.format(value);
}

/** Three significant digits for small rates, whole numbers above 100. */
export function formatRate(value: number): string {
  if (value >= 100) return COUNT.format(value);
  return value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

/** `850 ms`, `4.2 s`, `3m 05s`, `2h 10m`. */
export function formatDuration(durationMs: number): string {
  if (!Number.isFinite(durationMs)) return "–";
  if (durationMs < 1_000) return `${Math.round(durationMs)} ms`;
  if (durationMs < 60_000) return `${(durationMs / 1_000).toFixed(1)} s`;
  const totalSeconds = Math.round(durationMs / 1_000);
  const hours = Math.floor(totalSeconds / 3_600);
  const minutes = Math.floor((totalSeconds % 3_600) / 60);
  if (hours > 0) return `${hours}h ${String(minutes).padStart(2, "0")}m`;
  return `${minutes}m ${String(totalSeconds % 60).padStart(2, "0")}s`;
}

/** Money in the price table's currency, which has no name: two digits after the point, more where the amount is small. */
export function formatMoney(amount: number): string {
  if (amount === 0) return "0.00";
  if (amount >= 1) return amount.toFixed(2);
  return amount >= 0.01 ? amount.toFixed(4) : amount.toPrecision(2);
}

export interface CostSum {
  /** Sum of the known costs. */
  readonly cost: number;
  /** Attempts that were answered or used tokens, by whether their price is known. */
  readonly attemptsWithPrice: number;
  readonly attemptsWithoutPrice: number;
}

/** A sum for a narrow place: `1.23`, `1.23 + 5?` when five attempts have no price, `unknown` when none has one. */
export function formatCostCell(sum: CostSum): string {
  if (isAllUnknown(sum)) return "unknown";
  return formatMoney(sum.cost) + (sum.attemptsWithoutPrice > 0 ? ` + ${formatCount(sum.attemptsWithoutPrice)}?` : "");
}

/** The same in words. A refused attempt does not count: it has no cost to know. */
export function formatCost(sum: CostSum): string {
  const { cost, attemptsWithPrice, attemptsWithoutPrice } = sum;
  if (attemptsWithoutPrice === 0) return formatMoney(cost);
  const used = attemptsWithPrice + attemptsWithoutPrice;
  if (isAllUnknown(sum)) return `unknown (no price for ${plural(used, "attempt")})`;
  return `${formatMoney(cost)} + ${plural(attemptsWithoutPrice, "attempt")} without a price (of ${formatCount(used)})`;
}

function isAllUnknown({ cost, attemptsWithPrice, attemptsWithoutPrice }: CostSum): boolean {
  return attemptsWithoutPrice > 0 && attemptsWithPrice === 0 && cost === 0;
}

/** What to do about unknown costs. */
export const PRICE_REMEDY =
  "Unknown prices: name a price table in PGW_PRICING_PATH; it counts for calls made from then on.";

/** A bar of `width` cells for a share in [0, 1]. */
export function progressBar(share: number, width: number): string {
  const filled = Math.round(Math.min(1, Math.max(0, share)) * width);
  return "█".repeat(filled) + "░".repeat(width - filled);
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}
