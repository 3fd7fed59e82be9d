import { describe, expect, test } from "vitest";
import type { OcrTransport } from "../../ports/transport.js";
import { runtime, testSource } from "../attempt.test-helper.js";
import { startReplayServer } from "../replay-server.test-helper.js";
import { createMinerUTransport } from "./mineru.js";
import { createMonkeyOcrTransport } from "./monkey-ocr.js";
import { failure, ocrAttempt } from "./ocr.test-helper.js";
import { createPaddleOcrTransport } from "./paddle.js";

/** What every OCR server that is asked for no model makes of a refusal, by whatever stands in front of it. */
const MAKERS = {
  "monkey-ocr": createMonkeyOcrTransport,
  mineru: createMinerUTransport,
  paddle: createPaddleOcrTransport,
};
const CALLS = {
  ocr_text: (transport: OcrTransport) => transport.recognizeText.bind(transport),
  ocr_layout: (transport: OcrTransport) => transport.parseLayout.bind(transport),
};

const TABLE = Object.entries(MAKERS).flatMap(([name, make]) =>
  Object.entries(CALLS).map(([operation, callOf]) => [name, operation, make, callOf] as const),
);

describe.each(TABLE)("%s, %s", (_name, operation, make, callOf) => {
  test.each([
    [404, '{"error":{"message":"said nothing found","code":"no_such_thing"}}'],
    [405, '{"error":{"message":"said nothing found","code":"no_such_thing"}}'],
    [410, '{"error":{"message":"said nothing found","code":"no_such_thing"}}'],
    [404, '{"error":{"message":"The model `m` does not exist","code":"model_not_found"}}'],
    [404, '{"detail":"Not Found"}'],
  ])("%i %s is a wrong address", async (status, body) => {
    const server = await startReplayServer({ status, chunks: [{ utf8: body }] });
    const transport = make({ runtime });
    try {
      const error = await failure(callOf(transport)(ocrAttempt(testSource(server.baseUrl, { name: "reader" }))));
      expect(error).toMatchObject({ name: "SourceDeadError", code: "endpoint_not_found", statusCode: status });
      expect(error.message).toBe(
        `reader ${operation} model or endpoint not found (check BASE_URL): ${status} | ${body}`,
      );
    } finally {
      await transport.close();
      await server.close();
    }
  });
});
