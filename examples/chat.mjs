// @ts-check
// One governed call.
import { GatewayClient } from "polygateway";
import { startSimulatedProvider } from "polygateway/testing";

const provider = await startSimulatedProvider(); // with a key of your own, none of this is needed

const client = new GatewayClient({
  scope: "LLM",
  sources: [
    { name: "sim_1", baseUrl: provider.baseUrl, apiKey: "none", model: "sim-model", rpm: 60, timeoutMs: 30_000 },
  ],
});

const reply = await client.chat({
  messages: [{ role: "user", content: "Why is the sky blue?" }],
  sampling: { temperature: 0, maxTokens: 200 },
});
console.log(reply.content);
console.log(`${reply.sourceName}: ${reply.usage.totalTokens} tokens, ${reply.attempts} attempt, ${reply.finishReason}`);

await client.close(); // waits for calls in flight, writes telemetry, closes the sockets
await provider.stop();
