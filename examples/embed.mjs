// @ts-check
// Vectors for a list of texts, in batches, and the text nearest to a question.
import { EmbeddingClient } from "polygateway";
import { startSimulatedProvider } from "polygateway/testing";

const provider = await startSimulatedProvider(); // with a key of your own, none of this is needed

const client = new EmbeddingClient({
  scope: "EMBED",
  sources: [{ name: "sim_1", baseUrl: provider.baseUrl, apiKey: "none", model: "sim-embed", maxConcurrency: 4 }],
  batchSize: 2, // what your provider takes: 10 at some, 2,048 at others
  concurrency: 3, // batches in flight at once
  normalize: true, // then the dot product is the cosine
});

const texts = ["The sky is blue.", "Water boils at 100 °C.", "Cats sleep a lot.", "Rain is water.", "Grass is green."];
const { vectors, dim, batches } = await client.embed(texts, { vectors: "float32" });
console.log(`${vectors.length} vectors of ${dim} dimensions in ${batches.length} batches`);

const [question] = (await client.embed(["Rain is water."], { vectors: "float32" })).vectors;
/** @param {Float32Array} vector */
const similarity = (vector) => vector.reduce((sum, number, at) => sum + number * (question?.[at] ?? 0), 0);
const scores = vectors.map(similarity);
console.log("nearest:", texts[scores.indexOf(Math.max(...scores))]);

await client.close();
await provider.stop();
