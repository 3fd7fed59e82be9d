import { ocrReaderOf } from "../../domain/ocr-ability.js";
import type { SourceConfig } from "../../domain/source.js";
import { deepseekReader } from "./vlm-deepseek.js";
import { dotsReader } from "./vlm-dots.js";
import { olmocrReader } from "./vlm-olmocr.js";
import { plainReader } from "./vlm-plain.js";
import type { VlmReader } from "./vlm-reader.js";

const READERS = [plainReader, dotsReader, deepseekReader, olmocrReader];

/** The reader that a source names, else the one that its model is known by, else the plain one. */
export function readerOf(source: SourceConfig): VlmReader {
  const wanted = ocrReaderOf(source);
  return READERS.find(({ name }) => name === wanted) ?? plainReader;
}
