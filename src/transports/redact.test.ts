import { expect, it } from "vitest";
import { Secret } from "../domain/secret.js";
import { testSource } from "./attempt.test-helper.js";
import { createRedactor } from "./redact.js";

const KEY = 'sk-CANARY/"0123456789+abc';

it("removes the key in every form in which it may be echoed", () => {
  const redact = createRedactor([testSource("http://127.0.0.1/v1", { apiKey: new Secret(KEY) })]);
  const forms = [KEY, JSON.stringify(KEY), encodeURIComponent(KEY), Buffer.from(KEY).toString("base64")];
  for (const form of forms) expect(redact(`wrong key: ${form}!`)).toMatch(/^wrong key: "?\[redacted\]"?!$/);
});

it("removes credentials in headers, and leaves other texts alone", () => {
  const source = testSource("http://127.0.0.1/v1", {
    apiKey: new Secret("none"),
    headers: { "api-key": "secret-4711", authorization: "Bearer token-4712", "x-title": "My App" },
  });
  const redact = createRedactor([source]);
  expect(redact("secret-4711 token-4712 My App none")).toBe("[redacted] [redacted] My App none");
});

it("removes a key that characters without width cut in pieces, plain or escaped, and leaves them in other texts", () => {
  const redact = createRedactor([testSource("http://127.0.0.1/v1", { apiKey: new Secret(KEY) })]);
  for (const unseen of ["\u200b", "\ufeff", "\u2060", "\\u200b", "\\\\uFEFF", "&#8203;", "&#x200B;", "%E2%80%8B"]) {
    for (const form of [KEY, encodeURIComponent(KEY), Buffer.from(KEY).toString("base64")]) {
      const echoed = [...form].join(unseen);
      expect(redact(`wrong key: ${echoed}!`), unseen).toBe("wrong key: [redacted]!");
      expect(redact(`wrong key: ${form.slice(0, 7)}${unseen}${form.slice(7)}!`)).toBe("wrong key: [redacted]!");
    }
  }
  const text = "\ufeffno key\u200b in here \\u200b";
  expect(redact(text)).toBe(text);
});
