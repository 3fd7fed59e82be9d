import { expect, test } from "vitest";
import { msText } from "./ms-text.js";

test.each([
  [4_999.416754, "4999 ms"],
  [300_000, "300000 ms"],
  [0, "0 ms"],
  [0.25, "0.3 ms"],
  [1.2, "1 ms"],
])("%f is told as %s", (lengthMs, text) => {
  expect(msText(lengthMs)).toBe(text);
});
