import { expect, it } from "vitest";
import { expectedIn } from "./expected.js";

it.each([
  ["Invalid input: expected number, received undefined", "number"],
  ["Too small: expected number to be >0", "number to be >0"],
  ["Invalid type: Expected number but received undefined", "number"],
  ["celsius must be a number (was missing)", "a number"],
  ["Invalid email address", "a value without this problem: Invalid email address"],
  ["", "something else"],
])("%j wants %s", (message, expected) => {
  expect(expectedIn(message)).toBe(expected);
});
