import { expect, test } from "vitest";
import { contentVerdict, failureVerdict, PLACEHOLDER } from "./monkey-ocr-verdict.js";

test.each([
  ["OCR task failed: 400: Unsupported file type: .gif. Allowed: .pdf", "rejected", "unsupported_modality"],
  ["Parsing failed: 400: Unsupported file type: .gif. Allowed: .pdf", "rejected", "unsupported_modality"],
  ["Parsing failed: 400: no pages", "rejected", "bad_request"],
  ["Parsing failed: 500: Model not initialized", "transient", "overloaded"],
  ["OCR task failed: 503: Model not loaded", "transient", "overloaded"],
  ["Error: Request queue full", "limited", "rate_limit"],
  ["Error: Request timeout", "transient", "upstream_error"],
  ["CUDA out of memory. Tried to allocate 400: MiB", "transient", "upstream_error"],
  ["Parsing failed: list index out of range", "transient", "upstream_error"],
  ["Parsing failed: took 2400: ms", "transient", "upstream_error"],
  ["", "transient", "upstream_error"],
])("a failure that says %j", (text, kind, code) => {
  expect(failureVerdict(text)).toEqual({ kind, code });
});

test.each<[string, unknown]>([
  ["Hello", null],
  ["All is well. Error: 5 is the margin", null],
  ["Error:5", null],
  ["On line 3\nError: Request timeout", null],
  ["Error: Request queue full", { kind: "limited", code: "rate_limit" }],
  ["Page one\n\nError: Request queue full\n\nPage three", { kind: "limited", code: "rate_limit" }],
  ["Page one\n\nError: Request timeout", { kind: "transient", code: "upstream_error" }],
  ["Error: CUDA error", { kind: "transient", code: "upstream_error" }],
  ["Error: model not loaded", { kind: "transient", code: "overloaded" }],
  ["Error: division by zero", { kind: "invalid", code: "malformed" }],
  ["Error: Unsupported file type", { kind: "invalid", code: "malformed" }],
])("a text %j", (text, verdict) => {
  expect(contentVerdict(text)).toEqual(verdict);
});

test("placeholders are known by their beginning", () => {
  expect(PLACEHOLDER.test("No middle.json file found")).toBe(true);
  expect(PLACEHOLDER.test("Unknown return_type: x")).toBe(true);
  expect(PLACEHOLDER.test('{"a":"No middle.json file found"}')).toBe(false);
});
