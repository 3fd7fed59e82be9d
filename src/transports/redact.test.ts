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
