// @ts-check
// A stream: typed events as they come, the whole answer at the end, and leaving early.
import { GatewayClient } from "polygateway";
import { startSimulatedProvider } from "polygateway/testing";

const provider = await startSimulatedProvider({ latency: { ttftMedianMs: 50, tokenMs: 10 } });
const client = new GatewayClient({
  scope: "LLM",
  sources: [{ name: "sim_1", baseUrl: provider.baseUrl, apiKey: "none", model: "sim-model" }],
});
const messages = [{ role: "user", content: "Count to five." }];

const stream = client.stream({ messages }); // lazy: nothing is sent yet
for await (const event of stream) {
  if (event.type === "text-delta") process.stdout.write(event.text);
}
const whole = await stream.final;
console.log(`\n${whole.finishReason} after ${whole.usage.completionTokens} tokens`);

for await (const event of client.stream({ messages })) {
  if (event.type === "text-delta") break; // closes the socket and gives the permit back
}
const { leases } = await client.snapshot();
console.log(`permits still held: ${leases.live}`);

await client.close();
await provider.stop();
