// @ts-check
// Two clients, one set of limits: they share a governor, so they share its queue, its permits and its breakers.
// Most programs need less: one client used everywhere shares by itself.
import { GatewayClient } from "polygateway";
import { judgeLimits, startSimulatedProvider } from "polygateway/testing";

const provider = await startSimulatedProvider({ latency: { ttftMedianMs: 50 } });
const limits = { maxConcurrency: 3 };
const sources = [{ name: "sim_1", baseUrl: provider.baseUrl, apiKey: "none", model: "sim-model", ...limits }];

const patient = new GatewayClient({ scope: "LLM", sources });
const hasty = new GatewayClient({ scope: "LLM", sources, governor: patient.governor, deadlineMs: 5_000 });

const messages = [{ role: "user", content: "Hello" }];
await Promise.all(Array.from({ length: 12 }, (_, index) => (index % 2 ? patient : hasty).chat({ messages })));

for (const verdict of judgeLimits(provider.ledger(), limits).verdicts) console.log(verdict.message);

await Promise.all([patient.close(), hasty.close()]);
await provider.stop();
