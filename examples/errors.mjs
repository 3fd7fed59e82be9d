// @ts-check
// The three ends a caller treats differently, and where each says why.
import { GatewayClient, GatewayUnavailableError, RequestRejectedError, ResultInvalidError } from "polygateway";
import { startSimulatedProvider } from "polygateway/testing";

const provider = await startSimulatedProvider({ apiKeys: ["sk-simulated-good-key"] });

/** @param {string} apiKey */
const clientWith = (apiKey) =>
  new GatewayClient({
    scope: "LLM",
    sources: [{ name: "sim_1", baseUrl: provider.baseUrl, apiKey, model: "sim-model" }],
  });

/**
 * @param {GatewayClient} client
 * @param {import("polygateway").ChatRequest} request
 */
async function ask(client, request) {
  try {
    const reply = await client.chat(request);
    return `answered: ${reply.content}`;
  } catch (error) {
    if (error instanceof GatewayUnavailableError) {
      const reasons = Object.entries(error.perSourceReasons).map(([source, { reason }]) => `${source} is ${reason}`);
      return `try later (${error.code}, in ${Math.round(error.retryAfterMs / 1000)} s): ${reasons.join(", ")}`;
    }
    if (error instanceof RequestRejectedError) return `the request is bad (${error.code}): ${error.message}`;
    if (error instanceof ResultInvalidError) return `unusable answer (${error.code}): ${error.rawText}`;
    throw error; // a defect of the setup, or your own abort reason
  } finally {
    await client.close();
  }
}

const messages = [{ role: "user", content: "Hello" }];
console.log(await ask(clientWith("sk-simulated-good-key"), { messages }));
console.log(await ask(clientWith("sk-simulated-old-key"), { messages }));
console.log(await ask(clientWith("sk-simulated-good-key"), { messages: [] }));
await provider.stop();
