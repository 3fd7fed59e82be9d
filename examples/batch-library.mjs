// @ts-check
// Many calls from code: at most eight at once, each with its own end, results in the order of the questions.
// For files, the command `polygateway batch` does more: it resumes, it waits outages out, it writes one line each.
import { GatewayClient, GatewayUnavailableError, gatherBounded } from "polygateway";
import { startSimulatedProvider } from "polygateway/testing";

const provider = await startSimulatedProvider({ faults: { errorRate: 0.1 }, seed: 7 });
const client = new GatewayClient({
  scope: "LLM",
  sources: [{ name: "sim_1", baseUrl: provider.baseUrl, apiKey: "none", model: "sim-model", maxConcurrency: 8 }],
  retry: { backoffBaseMs: 50 },
});

const questions = Array.from({ length: 40 }, (_, index) => `What is ${index} times ${index}?`);

/** A generator: the next task is made only when there is room for it. */
function* tasks() {
  for (const question of questions) {
    yield (/** @type {AbortSignal} */ signal) =>
      client.chat({ messages: [{ role: "user", content: question }], sessionId: "squares", signal });
  }
}

const ends = await gatherBounded(tasks(), 8, { settle: true });
const answered = ends.filter((end) => end.status === "fulfilled").length;
const later = ends.filter((end) => end.status === "rejected" && end.reason instanceof GatewayUnavailableError).length;
console.log(`${answered} of ${questions.length} answered, ${later} to be tried later`);
console.log(`${provider.stats().arrived} requests reached the provider`);

await client.close();
await provider.stop();
