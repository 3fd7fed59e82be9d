import { isOcrTransport, type OcrTransportName } from "../../domain/ocr.js";
import type { SourceConfig } from "../../domain/source.js";
import type { OcrTransport } from "../../ports/transport.js";
import type { OpenAiChatTransportOptions } from "../openai/chat.js";
import { createMinerUTransport } from "./mineru.js";
import { createMistralOcrTransport } from "./mistral.js";
import { createMonkeyOcrTransport } from "./monkey-ocr.js";
import { createPaddleOcrTransport } from "./paddle.js";
import { createVlmOcrTransport } from "./vlm.js";

type Maker = (options: OpenAiChatTransportOptions) => OcrTransport;

const MAKERS: Readonly<Record<OcrTransportName, Maker>> = {
  "monkey-ocr": createMonkeyOcrTransport,
  mineru: createMinerUTransport,
  paddle: createPaddleOcrTransport,
  mistral: createMistralOcrTransport,
  vlm: createVlmOcrTransport,
};

/** Every OCR protocol behind one port: each source is asked by its own, made when it is first needed. */
export function createOcrTransport(options: OpenAiChatTransportOptions): OcrTransport {
  const made = new Map<OcrTransportName, OcrTransport>();

  function of({ transport }: SourceConfig): OcrTransport {
    // Checked where the configuration is read.
    const name: OcrTransportName = isOcrTransport(transport) ? transport : "vlm";
    let found = made.get(name);
    if (found === undefined) {
      found = MAKERS[name](options);
      made.set(name, found);
    }
    return found;
  }

  return {
    recognizeText: (attempt) => of(attempt.source).recognizeText(attempt),
    parseLayout: (attempt) => of(attempt.source).parseLayout(attempt),
    checkHealth: (check) => of(check.source).checkHealth(check),
    async close() {
      await Promise.all([...made.values()].map((transport) => transport.close()));
    },
  };
}
