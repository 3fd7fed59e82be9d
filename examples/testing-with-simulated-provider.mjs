// @ts-check
// How a program that calls a model is tested: a real HTTP server with faults, limits and a ledger of its own.
import assert from "node:assert/strict";
import { GatewayClient } from "polygateway";
import { judgeLimits, startSimulatedProvider } from "polygateway/testing";

const limits = { maxConcurrency: 4, rpm: 600 };
const provider = await startSimulatedProvider({
  apiKeys: ["sk-simulated-0123456789"],
  limits,
  faults: { errorRate: 0.2 },
  seed: 3, // the same seed and order of arrival give the same faults
  answer: (request) => request.question.toUpperCase(),
});
const client = new GatewayClient({
  scope: "LLM",
  sources: [
    { name: "sim_1", baseUrl: provider.baseUrl, apiKey: "sk-simulated-0123456789", model: "sim-model", ...limits },
  ],
  retry: { backoffBaseMs: 50 },
});

const replies = await Promise.all(
  ["one", "two", "three", "four", "five"].map((word) => client.chat({ messages: [{ role: "user", content: word }] })),
);
assert.deepEqual(
  replies.map((reply) => reply.content),
  ["ONE", "TWO", "THREE", "FOUR", "FIVE"],
);

// A script is answered byte for byte: here a stream that ends in the middle.
provider.script({
  status: 200,
  headers: { "content-type": "text/event-stream" },
  chunks: [{ utf8: 'data: {"choices":[{"index":0,"delta":{"content":"half an ans"}}]}\n\n' }],
  end: "close",
});
const again = await client.chat({ messages: [{ role: "user", content: "whole" }] });
assert.equal(again.content, "WHOLE");
assert.ok(again.attempts >= 2, "a cut stream is never a short answer: it was sent again");

// The provider's own ledger is an independent witness.
const judgement = judgeLimits(provider.ledger(), limits);
assert.ok(judgement.ok, judgement.violations.map((violation) => violation.message).join("\n"));
console.log(judgement.verdicts.map((verdict) => verdict.message).join("\n"));

await client.close();
await provider.stop();
