// @ts-check
// An order of your own: the cheap source first, the other one when the cheap one has no free slot or fails.
import { GatewayClient } from "polygateway";
import { startSimulatedProvider } from "polygateway/testing";

const cheap = await startSimulatedProvider({ name: "cheap", latency: { ttftMedianMs: 100 } });
const dear = await startSimulatedProvider({ name: "dear" });

/** @type {Record<string, number>} */
const priceOf = { cheap_1: 1, dear_1: 10 };

/** @type {import("polygateway").Selector} */
const cheapFirst = {
  // The governor takes the first name that has a free slot. The second argument, a snapshot, tells what each source
  // has in flight and whether it is broken, for orders that depend on it.
  order: (candidates) => [...candidates].sort((a, b) => (priceOf[a] ?? 0) - (priceOf[b] ?? 0)),
};

const client = new GatewayClient({
  scope: "LLM",
  sources: [
    { name: "cheap_1", baseUrl: cheap.baseUrl, apiKey: "none", model: "sim-model", maxConcurrency: 2 },
    { name: "dear_1", baseUrl: dear.baseUrl, apiKey: "none", model: "sim-model", maxConcurrency: 2 },
  ],
  selector: cheapFirst,
});

const ask = () => client.chat({ messages: [{ role: "user", content: "Hello" }] });
const replies = await Promise.all([ask(), ask(), ask()]);
console.log(replies.map((reply) => reply.sourceName).join(", ")); // two fit into cheap_1, the third goes to dear_1

await client.close();
await Promise.all([cheap.stop(), dear.stop()]);
