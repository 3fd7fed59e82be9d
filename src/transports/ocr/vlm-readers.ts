import type { SourceConfig } from "../../domain/source.js";
import { deepseekReader } from "./vlm-deepseek.js";
import { dotsReader } from "./vlm-dots.js";
import { olmocrReader } from "./vlm-olmocr.js";
import { plainReader } from "./vlm-plain.js";
import type { VlmReader } from "./vlm-reader.js";

const BY_MODEL: readonly (readonly [model: RegExp, reader: VlmReader])[] = [
  [/dots[._-]?m?ocr/i, dotsReader],
  [/deepseek[._-]?ocr/i, deepseekReader],
  [/olm[._-]?ocr/i, olmocrReader],
];

const READERS = [plainReader, dotsReader, deepseekReader, olmocrReader];

/** The reader that a source names, else the one that its model is known by, else the plain one. */
export function readerOf({ ocrReader = "auto", model }: SourceConfig): VlmReader {
  const named = READERS.find(({ name }) => name === ocrReader);
  return named ?? BY_MODEL.find(([pattern]) => pattern.test(model))?.[1] ?? plainReader;
}
