import { expect, test } from "vitest";
import { didYouMean } from "./did-you-mean.js";

const KNOWN = ["RPM", "TPM", "TIMEOUT_S", "TTFT_TIMEOUT_S", "MAX_CONCURRENCY"];

test.each([
  ["MAX_CONCURENCY", "MAX_CONCURRENCY"],
  ["TIEMOUT_S", "TIMEOUT_S"],
  ["timeout_s", "TIMEOUT_S"],
  ["RMP", "RPM"],
])("%s was meant to be %s", (word, meant) => {
  expect(didYouMean(word, KNOWN)).toBe(meant);
});

test.each(["COLOUR", "", "X", "A".repeat(10_000)])("nothing is near %s", (word) => {
  expect(didYouMean(word, KNOWN)).toBeUndefined();
});
