import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Secret } from "../src/domain/secret.js";
import { PolyGatewayError } from "../src/index.js";
import { testSource } from "../src/transports/attempt.test-helper.js";
import { parsedBytes } from "../src/transports/json-weight.js";
import { ValueScan } from "../src/transports/openai/value-scan.js";
import { createRedactor } from "../src/transports/redact.js";
import { call } from "./support/calls.js";
import { caseClient, sourceOf } from "./support/case-client.js";
import { hi, WAYS } from "./support-hostile/attack.js";
import { JSON_HEAD, SSE_HEAD, startRawServer, statusHead } from "./support-hostile/raw-server.js";

/** What must hold for any bytes that a provider may send. SSE and Retry-After have theirs beside the source. */

const FIELDS = [
  "choices",
  "delta",
  "message",
  "content",
  "tool_calls",
  "function",
  "arguments",
  "index",
  "id",
  "usage",
];
const MORE = [
  "error",
  "code",
  "detail",
  "finish_reason",
  "model",
  "prompt_tokens",
  "logprobs",
  "__proto__",
  "reasoning",
];

/** JSON that looks like an answer, and like nothing else. */
const anyJson = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 6 },
    fc.constantFrom<unknown>(null, true, 0, -1, 1e308, "", "stop", "error", "429", "{}", "[DONE]", "<think>"),
    fc.string({ maxLength: 8 }),
    fc.double(),
    fc.array(tie("value"), { maxLength: 3 }),
    fc.array(fc.tuple(fc.constantFrom(...FIELDS, ...MORE), tie("value")), { maxLength: 5 }).map(Object.fromEntries),
  ),
})).value;

const answerLike = fc.oneof(
  anyJson,
  fc.array(anyJson, { maxLength: 3 }).map((choices) => ({ choices })),
  anyJson.map((delta) => ({ choices: [{ index: 0, delta, finish_reason: null }] })),
  anyJson.map((message) => ({ choices: [{ index: 0, message, finish_reason: "stop" }] })),
  anyJson.map((error) => ({ error })),
);

describe.each(WAYS)("%s()", (way) => {
  it("never fails outside the taxonomy, whatever bodies and frames hold", async () => {
    let answer = "";
    await using server = await startRawServer((socket) => void socket.end(answer));
    const { client, recorder } = caseClient([sourceOf("s_1", server.baseUrl)], {
      retry: { maxAttempts: 1 },
      breaker: { failThreshold: 1_000_000, minSamples: 1_000_000 },
    });
    const status = fc.constantFrom(200, 200, 200, 400, 404, 422, 500, 299);
    await fc.assert(
      fc.asyncProperty(
        status,
        fc.boolean(),
        fc.array(answerLike, { minLength: 1, maxLength: 4 }),
        async (code, sse, values) => {
          const texts = values.map((value) => JSON.stringify(value) ?? "null");
          if (code !== 200) answer = statusHead(code) + texts[0];
          else if (sse) answer = `${SSE_HEAD}${texts.map((text) => `data: ${text}\n\n`).join("")}data: [DONE]\n\n`;
          else answer = JSON_HEAD + texts[0];
          recorder.rows.length = 0;
          const { error, reply } = await call(client, way, hi);
          if (reply === undefined) expect(PolyGatewayError.isInstance(error)).toBe(true);
          else expect(typeof reply.content).toBe("string");
          expect(recorder.rows.filter(({ final }) => final).length).toBe(1);
          expect(JSON.stringify(({} as { polluted?: unknown }).polluted)).toBeUndefined();
        },
      ),
      { numRuns: 400 },
    );
    expect((await client.snapshot()).leases.live).toBe(0);
    await client.close();
  });
});

const redactorOf = (key: string) => createRedactor([testSource("http://127.0.0.1/v1", { apiKey: new Secret(key) })]);
/** What a header can carry, as a key is made of. */
const key = fc
  .array(fc.constantFrom(...'abcXYZ019-_.+/=%&"\\$~!'), { minLength: 12, maxLength: 60 })
  .map((characters) => `sk-${characters.join("")}`);

const hex = (unit: number, length: number): string => unit.toString(16).padStart(length, "0");
const ESCAPES: readonly ((unit: number) => string)[] = [
  (unit) => String.fromCharCode(unit),
  (unit) => `\\u${hex(unit, 4)}`,
  (unit) => `\\u${hex(unit, 4).toUpperCase()}`,
  (unit) => `\\\\u${hex(unit, 4)}`,
  (unit) => `\\x${hex(unit, 2)}`,
  (unit) => `%${hex(unit, 2)}`,
  (unit) => `%25${hex(unit, 2).toUpperCase()}`,
  (unit) => `&#${unit};`,
  (unit) => `&#x${hex(unit, 2)};`,
];
const FORMS: readonly ((secret: string) => string)[] = [
  (secret) => JSON.stringify(secret),
  (secret) => JSON.stringify(secret).replaceAll("/", "\\/"),
  (secret) => encodeURIComponent(secret),
  (secret) => Buffer.from(secret).toString("hex"),
  (secret) => Buffer.from(secret).toString("hex").toUpperCase(),
  (secret) => Buffer.from(secret).toString("base64"),
  (secret) => Buffer.from(secret).toString("base64url"),
  (secret) => Buffer.from(`Bearer ${secret}`).toString("base64"),
  (secret) => Buffer.from(`user:${secret}`).toString("base64"),
  (secret) => Buffer.from(`{"key":"${secret}"}`).toString("base64url"),
];

describe("the redactor", () => {
  it("leaves nothing of a secret, in any form and anywhere in a text", () => {
    fc.assert(
      fc.property(key, fc.string(), fc.string(), fc.nat(FORMS.length), (secret, before, after, which) => {
        const form = (FORMS[which] ?? ((plain: string) => plain))(secret);
        const clean = redactorOf(secret)(`${before}${form}${after}`);
        expect(clean).toContain("[redacted]");
        expect(clean).not.toContain(secret);
        // In base64 the neighbours share up to two characters at each edge.
        expect(clean).not.toContain(form.slice(4, -4));
      }),
      { numRuns: 500 },
    );
  });

  it("finds it with every character escaped in a way of its own", () => {
    fc.assert(
      fc.property(key, fc.array(fc.nat(ESCAPES.length - 1), { minLength: 1, maxLength: 20 }), (secret, ways) => {
        const mixed = [...secret].map((letter, at) => ESCAPES[ways[at % ways.length]!]!(letter.charCodeAt(0))).join("");
        expect(redactorOf(secret)(`before ${mixed} after`)).toBe("before [redacted] after");
      }),
      { numRuns: 500 },
    );
  });

  it("changes nothing in a text without the secret", () => {
    const redact = redactorOf("sk-CANARY-0123456789-abcdef");
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", maxLength: 300 }), (text) => void expect(redact(text)).toBe(text)),
    );
    for (const text of ["100 % sure &#115; \\u0073k", "sk-CANARY-0123456789", "%73k-CANARY &#x73;"])
      expect(redact(text)).toBe(text);
  });
});

/** Processor time of the second run over that of the first, for four times the work; the best of some tries. */
function growth(work: (times: number) => void): number {
  const cost = (times: number): number => {
    const started = process.cpuUsage();
    work(times);
    return process.cpuUsage(started).user + 1_000;
  };
  work(1);
  return Math.min(...[1, 2, 3].map(() => cost(4) / cost(1)));
}

describe("linear in", () => {
  const MOST = 10;

  it.each([
    ["escapes", "%73%6b\\u0073\\u006b&#115;"],
    ["beginnings of the key", "sk-CANARY-0123456789-abcde"],
    ["backslashes", "\\\\\\\\\\\\\\\\"],
    ["percent signs", "%25%25%25"],
  ])("the redactor: %s", (_name, piece) => {
    const redact = redactorOf("sk-CANARY-0123456789-abcdef");
    const unit = piece.repeat(Math.floor(400_000 / piece.length));
    expect(growth((times) => void redact(`${unit.repeat(times)}%`))).toBeLessThan(MOST);
  });

  it.each([
    ["quotes", '"'],
    ["escaped quotes", '\\"'],
    ["backslashes", "\\"],
    ["empty objects", "{},"],
  ])("weighing JSON: %s", (_name, piece) => {
    const unit = piece.repeat(Math.floor(500_000 / piece.length));
    expect(growth((times) => void parsedBytes(`["${unit.repeat(times)}`))).toBeLessThan(MOST);
  });
});

it("a value that arrives in pieces is whole exactly when all of it is JSON", () => {
  const texts = fc.oneof(
    fc.json(),
    fc.tuple(fc.json(), fc.string({ maxLength: 3 })).map((both) => both.join("")),
  );
  fc.assert(
    fc.property(texts, fc.integer({ min: 1, max: 5 }), (text, size) => {
      fc.pre(text.length <= 60 || /^\s*[[{"]/.test(text));
      const scan = ValueScan.of("");
      for (let at = 0; at < text.length; at += size) scan.feed(text.slice(at, at + size));
      let whole = true;
      try {
        JSON.parse(text);
      } catch {
        whole = false;
      }
      expect(scan.isWhole(text)).toBe(whole);
    }),
    { numRuns: 1_000 },
  );
});
