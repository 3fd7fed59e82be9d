import { expect, test } from "vitest";
import { inlineFunctions } from "../scripts/lua-inline.mjs";

/** What becomes of the last statement. */
function inlined(...statements: string[]): string {
  const module = { name: "m", exported: new Set(), imports: new Map(), declared: new Set(), statements };
  inlineFunctions([module]);
  return module.statements.at(-1)!;
}

const ADD = "function add(a, b)\n    return a + b\nend";
const WAIT =
  "function wait(____bindingPattern0)\n    local waitMs\n    waitMs = ____bindingPattern0.waitMs\n    return waitMs + 1\nend";
const DRAW = "function noise(value, random)\n    return value * draw(random)\nend";

test("a function of one expression stands in the place of its calls", () => {
  expect(inlined(ADD, "x = add(y.z, 2) * 3")).toBe("x = (y.z + 2) * 3");
  expect(inlined(ADD, "x = f(add(list[n + 1], b))")).toBe("x = f((list[n + 1] + b))");
  expect(inlined(WAIT, "x = wait(s)")).toBe("x = (s.waitMs + 1)");
});

test.each([
  ["an argument does something", ADD, "x = add(next(), 2)"],
  ["arguments are missing", ADD, "x = add(1)"],
  ["it is called for what it does", DRAW, "noise(1, random)"],
  [
    "it does something, and an argument is read from a record that this may change",
    DRAW,
    "x = noise(random.state, random)",
  ],
  ["one of its names means something else there", DRAW, "function f(draw)\n    return noise(1, random)\nend"],
  ["it is another's method", ADD, "x = other:add(1, 2)"],
  ["it is a text", ADD, 'x = "y.add"'],
])("it stays a call where %s", (_, callee, statement) => {
  expect(inlined(callee, statement)).toBe(statement);
});
