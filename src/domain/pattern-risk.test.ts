import { describe, expect, it } from "vitest";
import { patternRisk } from "./pattern-risk.js";

describe("patterns whose time explodes", () => {
  it.each([
    "^(a+)+$",
    "^(a*)*$",
    "^(a|a)*$",
    "^(a|ab|b)*$",
    "^(\\w+\\s?)*$",
    "^(\\s*,\\s*)*$",
    "^([a-z]{1,3}){1,20}$",
    "^(a?){25}a{25}$",
    "^(x(a?|b?))*$",
    "^(?:(?:a+)b?)+$",
    "^((a|b)*c?)*$",
    "(.*)*x",
    "^(?=(a+)+$).*",
    "^([^,]|[a-z])+$",
    "^(\\d{1,3},?)*$",
    "^(?<n>\\p{L}+|\\p{Lu})+$",
    "^(a+\\u{61}*)+$",
    "^([a-zA-Z0-9])(([\\-.]|[_]+)?([a-zA-Z0-9]+))*(@){1}$",
    `^(${Array.from({ length: 3_000 }, (_, n) => `word${n}`).join("|")})*$`,
    `^${"(".repeat(40)}${"){7}".repeat(40)}$`,
  ])("%.60s", (source) => expect(patternRisk(source, "u")).toMatchObject({ exponential: true }));
});

describe("patterns whose time doesn't", () => {
  it.each([
    ["^[a-z]+(-[a-z]+)*$", 1],
    ["^\\d+(\\.\\d+)*$", 1],
    ["^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==)?$", 1],
    ["^[0-9a-f]{64}$", 0],
    ["^([0-9a-f]{32})*$", 1],
    ["^\\d{4}-\\d{2}-\\d{2}$", 0],
    ["^[A-Z]{2,3}$", 0],
    ["^(a|ab)*$", 1],
    ["^(?:\\w{1,30}\\.)+\\w{2,}$", 2],
    ["^\\s*\\S+\\s*$", 1],
    ["^.*foo.*bar.*$", 3],
    ["^[a-z]+-[a-z]+-[a-z]+-[a-z]+$", 1],
    ["a+b", 2],
    ["^(?=.*[a-z])(?=.*\\d).{8,}$", 2],
    ['^("[^"\\\\]*(?:\\\\.[^"\\\\]*)*")$', 1],
    ["^(['\"])x\\1$", 1],
    [`^(${Array.from({ length: 3_000 }, (_, n) => `word${n}`).join("|")})$`, 0],
    ["^[\\]\\[)(]+$", 1],
    ["^[\\w.+-]+@[\\w-]+\\.[\\w.-]+$", 1],
    ["", 1],
  ])("%.60s", (source, degree) => expect(patternRisk(source, "u")).toEqual({ exponential: false, degree }));
});

it("case is ignored where the pattern ignores it", () => {
  expect(patternRisk("^(a|A)*$", "i").exponential).toBe(true);
  expect(patternRisk("^(a|A)*$", "").exponential).toBe(false);
});
