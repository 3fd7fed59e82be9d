// What the compiler writes for the general case, written for the case at hand. Each of these gives the very same values.

/** A name, a field of one, or a number: to read it twice is cheaper than a call, and changes nothing. */
const SIMPLE = String.raw`-?\d+(?:\.\d+)?|[A-Za-z_]\w*(?:\.\w+)*`;

/** In Lua a loop over `ipairs` calls a function for each item. No rule adds to a list that it walks through. */
function plainLoops(text) {
  return text.replace(
    /^( *)for ____, (\w+) in ipairs\((.+)\) do$/gm,
    "$1local ____list = $3\n$1for ____at = 1, #____list do\n$1    local $2 = ____list[____at]",
  );
}

/** Compares as `math.max` and `math.min` themselves do, NaN included. */
function plainBounds(text) {
  return text.replace(
    new RegExp(`math\\.(max|min)\\((${SIMPLE}), (${SIMPLE})\\)`, "g"),
    (_, name, a, b) => `(${b} ${name === "max" ? ">" : "<"} ${a} and ${b} or ${a})`,
  );
}

/** A number too large for a double is infinite. */
const plainInfinity = (text) => text.replaceAll("math.huge", "1e999");

/** Infinity less itself is no number. */
function plainFiniteness(text) {
  return text.replace(new RegExp(`(?<!function )__TS__NumberIsFinite\\((${SIMPLE})\\)`, "g"), "($1 - $1 == 0)");
}

export function withPeepholes(text) {
  return [plainLoops, plainBounds, plainInfinity, plainFiniteness].reduce((now, change) => change(now), text);
}
