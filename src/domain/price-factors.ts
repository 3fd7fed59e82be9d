import type { SourceName } from "./tick.js";

/**
 * (price / lowest price)^κ of each source, κ = `priceWeight`; what has no price counts as the dearest. Computed once, because
 * the rules themselves know no power function (spec 02 §5).
 */
export function priceFactors(
  sources: readonly { readonly name: SourceName }[],
  prices: Readonly<Record<SourceName, number>> = {},
  priceWeight = 0,
): Record<SourceName, number> {
  const known = Object.values(prices).filter((price) => price > 0);
  if (priceWeight === 0 || known.length === 0) return {};
  const lowest = Math.min(...known);
  const dearest = Math.max(...known);
  return Object.fromEntries(
    sources.map(({ name }) => [name, Math.max(1, (prices[name] ?? dearest) / lowest) ** priceWeight]),
  );
}
