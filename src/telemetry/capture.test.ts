import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { sampleRecord } from "../testing/contracts/recorder.js";
import { createRecordRenderer } from "./capture.js";
import { cleanText, limitText, MAX_COLUMN_BYTES, redactText } from "./text.js";

const BODY =
  '{"error":{"message":"the prompt was: TOP SECRET PLAN","type":"invalid_request_error","code":"invalid_parameter_error"},"request_id":"req-42"}';

describe("capture", () => {
  test("full keeps texts and the body in error", () => {
    const record = sampleRecord(1, { error: `a_1 request rejected: 400 | ${BODY}` });
    expect(createRecordRenderer({ capture: "full" })(record)).toEqual(record);
  });

  test("digest keeps hash and length, and of an error label, status, provider code and request id", () => {
    const render = createRecordRenderer({ capture: "digest" });
    const rendered = render(sampleRecord(1, { error: `a_1 request rejected: 400 | ${BODY}` }));
    expect(rendered.response).toBe(`sha256:${createHash("sha256").update("hello").digest("hex")} 5 chars`);
    expect(rendered.error).toBe("a_1 request rejected: 400 (code invalid_parameter_error, request id req-42)");
    expect(JSON.stringify(rendered, (_, value) => (typeof value === "bigint" ? `${value}` : value))).not.toContain(
      "PLAN",
    );
  });

  test("none keeps nothing of the texts, nor of a body quoted in route, nor of an invalid result", () => {
    const render = createRecordRenderer({ capture: "none" });
    const route = JSON.stringify({
      a_1: { reason: "cooling", lastError: { code: "x", message: `a_1 failed: 500 | ${BODY}` } },
    });
    const rendered = render(
      sampleRecord(1, { route, outcome: "invalid", error: "not JSON: PLAN", errorCode: "schema" }),
    );
    expect([rendered.messages, rendered.response, rendered.thinking]).toEqual([null, null, null]);
    expect(rendered.route).toBe('{"a_1":{"reason":"cooling","lastError":{"code":"x","message":"a_1 failed: 500"}}}');
    expect(rendered.error).toBe("result invalid (schema)");
  });

  test("a secret is masked in every text column, also across the cut of a long text", () => {
    const secret = "sk-CANARY-0123456789";
    const redact = (text: string) => text.replaceAll(secret, "…");
    const render = createRecordRenderer({ capture: "full", redact });
    for (const offset of [0, 30_000, 52_000, 53_000, 60_000, 65_530, 100_000, 195_000, 195_921, 199_990]) {
      const response = `${"a".repeat(offset)}${secret}${"b".repeat(200_000 - offset)}`;
      const texts = { response, messages: secret, thinking: secret, error: secret, sessionId: secret, route: secret };
      const rendered = render(
        sampleRecord(1, { ...texts, sampling: secret, modelReported: secret, parentCallId: secret }),
      );
      const stored = JSON.stringify(Object.values(rendered).map(String));
      expect(stored).not.toContain("CANARY");
      expect(stored).not.toContain("sk-C");
    }
  });
});

describe("column text", () => {
  test("is at most 64 KiB, well formed and counts what it left out (property)", () => {
    const unit = fc.constantFrom("a", "é", "漢", "😀", "\ud800", "\0");
    fc.assert(
      fc.property(
        fc.array(unit, { minLength: 1, maxLength: 40 }),
        fc.integer({ min: 1, max: 200_000 }),
        (pieces, length) => {
          const pattern = pieces.join("");
          const original = pattern.repeat(Math.ceil(length / pattern.length)).slice(0, length);
          const clean = cleanText(original);
          const text = limitText(clean);
          expect(Buffer.byteLength(text)).toBeLessThanOrEqual(MAX_COLUMN_BYTES);
          expect(Buffer.from(text).toString()).toBe(text);
          expect(limitText(text)).toBe(text);
          const omitted = /…\((\d+) chars omitted\)…/.exec(text);
          if (omitted === null) expect(text).toBe(clean);
          else expect(text.length - omitted[0].length + Number(omitted[1])).toBe(clean.length);
        },
      ),
      { numRuns: 200 },
    );
  });

  test("a huge text is not redacted beyond what the column can keep", () => {
    let scanned = 0;
    const text = redactText("x".repeat(50_000_000), (part) => {
      scanned += part.length;
      return part;
    });
    expect(scanned).toBeLessThan(200_000);
    expect(text).toMatch(/…\(499\d{5} chars omitted\)…/);
  });
});
