import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ConfigError, GatewayClient, OcrClient } from "../../src/index.js";
import type { ReceivedRequest } from "../../src/testing/provider/answer.js";
import { type SimulatedProvider, startSimulatedProvider } from "../../src/testing/provider/server.js";
import { pngOf } from "./pictures.js";

const PNG = pngOf(20, 10);

/** OCR_PROMPT and OCR_LAYOUT_PROMPT, from the environment to the wire. */

const DOTS_ANSWER = '[{"bbox": [0, 0, 10, 10], "category": "Text", "text": "Hello"}]';
const MARKS = "<|img|><|imgpad|><|endofimg|>";

let provider: SimulatedProvider;
let asked: ReceivedRequest[];

beforeEach(async () => {
  asked = [];
  provider = await startSimulatedProvider({
    answer: (request) => {
      asked.push(request);
      return DOTS_ANSWER;
    },
  });
});

afterEach(() => provider.stop());

function envOf(model: string, more: Record<string, string> = {}, transport = "vlm"): Record<string, string> {
  const fields = { BASE_URL: provider.baseUrl, API_KEY: "none", MODEL: model, TRANSPORT: transport, ...more };
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [`OCR__A__1__${name}`, value]));
}

function promptsSent(): (string | undefined)[] {
  return asked.map(({ messages }) => {
    const parts = messages[0]?.content as { readonly type: string; readonly text?: string }[];
    return parts.find(({ type }) => type === "text")?.text;
  });
}

test.each([
  ["gpt-x", "Read it.", "Read it."],
  ["olmOCR-2", "Read it.", "Read it."],
  ["dots.ocr", "Read it.\n\tAll of it.", `${MARKS}Read it.\n\tAll of it.`],
  ["dots.ocr", `Read it. ${MARKS}`, `Read it. ${MARKS}`],
  ["DeepSeek-OCR", "OCR this image.", "<image>\nOCR this image."],
  ["DeepSeek-OCR", "<image>\nOCR this image.", "<image>\nOCR this image."],
])("%s is asked for text in the user's own words: %j", async (model, prompt, sent) => {
  const client = OcrClient.fromEnv("OCR", { env: envOf(model, { OCR_PROMPT: prompt }) });
  await client.recognizeText(PNG);
  await client.close();
  expect(promptsSent()).toEqual([sent]);
});

test("a prompt of several lines stands in a .env; text and layout have one each", async () => {
  const folder = mkdtempSync(join(tmpdir(), "pgw-prompt-"));
  const path = join(folder, ".env");
  const lines = Object.entries(envOf("dots.ocr")).map(([name, value]) => `${name}=${value}`);
  writeFileSync(
    path,
    [...lines, "OCR__A__1__OCR_LAYOUT_PROMPT='Give boxes.", '1. "bbox": four numbers\'', ""].join("\n"),
  );
  const client = OcrClient.fromEnv("OCR", { env: {}, dotenvPath: path });
  await client.parseLayout(PNG);
  await client.recognizeText(PNG);
  await client.close();
  rmSync(folder, { recursive: true });
  expect(promptsSent()).toEqual([
    `${MARKS}Give boxes.\n1. "bbox": four numbers`,
    `${MARKS}Extract the text content from this image.`,
  ]);
});

test.each([
  ["m", { OCR_PROMPT: "Read it." }, "mineru", /OCR__A__1__TRANSPORT = mineru is sent none/],
  ["m", { OCR_PROMPT: "Read it." }, "openai", /OCR__A__1__TRANSPORT = openai is sent none/],
  ["gpt-x", { OCR_LAYOUT_PROMPT: "Give boxes." }, "vlm", /gpt-x, read as plain, tells no places/],
  ["gpt-x", { OCR_PROMPT: " \n " }, "vlm", /is empty/],
  ["gpt-x", { OCR_PROMPT: "a\u0000b" }, "vlm", /control characters/],
])("%s with %j on %s is refused by key", (model, more, transport, words) => {
  let error: unknown;
  try {
    const client = transport === "openai" ? GatewayClient : OcrClient;
    client.fromEnv("OCR", { env: envOf(model, more, transport) });
  } catch (thrown) {
    error = thrown;
  }
  expect(error).toBeInstanceOf(ConfigError);
  const { problems } = error as ConfigError;
  expect(problems.filter(({ key }) => /OCR__A__1__OCR_(LAYOUT_)?PROMPT/.test(key))).toHaveLength(1);
  expect(String(error)).toMatch(words);
});
