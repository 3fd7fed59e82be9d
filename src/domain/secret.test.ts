import { inspect } from "node:util";
import { expect, test } from "vitest";
import { maskSecret, Secret } from "./secret.js";

test.each([
  ["sk-0123456789abcdef", "sk-…cdef"],
  ["0123456789abcdef", "…cdef"],
  ["short", "…"],
  ["", "…"],
])("%s is shown as %s: enough to recognise, not to use", (value, shown) => {
  expect(maskSecret(value)).toBe(shown);
});

test("a secret never prints itself, whichever way it is looked at", () => {
  const value = "sk-0123456789abcdef";
  const secret = new Secret(value);
  const looks = [
    String(secret),
    `${secret}`,
    JSON.stringify({ secret }),
    inspect(secret),
    inspect({ deep: [secret] }, { depth: 9, showHidden: true }),
    Object.entries(secret).join(),
  ];
  for (const look of looks) expect(look).not.toContain("0123456789");
  expect(String(secret)).toBe("sk-…cdef");
  expect(inspect(secret)).toBe("Secret(sk-…cdef)");
  expect(secret.reveal()).toBe(value);
});

test("a secret with a part that people may see shows that", () => {
  const secret = new Secret("postgres://me:0123456789@h/d", "postgres://me@h/d");
  const looks = [String(secret), JSON.parse(JSON.stringify(secret)), inspect(secret)];
  expect(looks).toEqual(["postgres://me@h/d", "postgres://me@h/d", "Secret(postgres://me@h/d)"]);
});
