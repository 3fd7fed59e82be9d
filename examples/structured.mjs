// @ts-check
// A value that fits a schema: the first answer doesn't, the second does.
import { GatewayClient, ResultInvalidError } from "polygateway";
import { startSimulatedProvider } from "polygateway/testing";

const answers = ['{"title":"Soup","minutes":"thirty"}', '{"title":"Soup","minutes":30}', "I can't."];
const provider = await startSimulatedProvider({ answer: () => answers.shift() ?? "I can't." });

const client = new GatewayClient({
  scope: "LLM",
  sources: [{ name: "sim_1", baseUrl: provider.baseUrl, apiKey: "none", model: "sim-model" }],
});

// A zod, valibot or arktype schema does as well; the value then has its type.
const schema = {
  type: "object",
  properties: { title: { type: "string" }, minutes: { type: "integer" } },
  required: ["title", "minutes"],
};
const request = { messages: [{ role: "user", content: "A recipe, please." }] };

/** @type {import("polygateway").StructuredReply<{ title: string, minutes: number }>} */
const { value, asks, usage } = await client.structured(request, schema, { maxReasks: 2 });
console.log(`${value.title} in ${value.minutes} minutes, after ${asks} asks and ${usage.totalTokens} tokens`);

// A plain call reads the answer too, once.
try {
  await client.chat({ ...request, responseFormat: { type: "json_schema", json_schema: { name: "recipe", schema } } });
} catch (error) {
  if (!(error instanceof ResultInvalidError)) throw error;
  console.log(`${error.code}: ${error.rawText}`);
}

await client.close();
await provider.stop();
