import type { Incapability } from "./capability.js";
import type { OcrImage, OcrMediaType, OcrOperation, OcrReaderName } from "./ocr.js";
import type { SourceConfig } from "./source.js";

/** Which OCR source can read what: known before anything is sent, so that a call goes to one that can. */

type KnownReader = Exclude<OcrReaderName, "auto">;

const READERS_BY_MODEL: readonly (readonly [RegExp, KnownReader])[] = [
  [/dots[._-]?(?:m?ocr)/i, "dots-ocr"],
  [/deepseek[._-]?ocr/i, "deepseek-ocr"],
  [/olm[._-]?ocr/i, "olmocr"],
];

/** How a `vlm` source is read: what it says, or by the name of its model. */
export function ocrReaderOf({ ocrReader, model }: Pick<SourceConfig, "ocrReader" | "model">): KnownReader {
  if (ocrReader !== "auto") return ocrReader;
  return READERS_BY_MODEL.find(([pattern]) => pattern.test(model))?.[1] ?? "plain";
}

/** Readers whose models say where things stand on the page. */
const READS_LAYOUT: ReadonlySet<KnownReader> = new Set(["dots-ocr", "deepseek-ocr"]);

/** Whether a `vlm` source can be asked where things stand. */
export function readsLayout(source: Pick<SourceConfig, "ocrReader" | "model">): boolean {
  return READS_LAYOUT.has(ocrReaderOf(source));
}

/** MonkeyOCR looks at the file name alone and takes only these (reference-providers §1.1). */
const OF_MONKEY_OCR: ReadonlySet<OcrMediaType> = new Set(["image/png", "image/jpeg", "application/pdf"]);

/** Why this source can't do it; null = as far as is known, it can. */
export function ocrIncapability(
  source: SourceConfig,
  operation: OcrOperation,
  { mediaType, size }: OcrImage,
): Incapability | null {
  const cannot = (text: string, param: string): Incapability => ({ code: "unsupported_modality", text, param });
  if (source.transport === "monkey-ocr" && !OF_MONKEY_OCR.has(mediaType)) {
    return cannot(`MonkeyOCR takes PNG, JPEG and PDF, not ${mediaType}; convert it first`, "image");
  }
  if (source.transport !== "vlm") return null;
  if (mediaType === "application/pdf") {
    return cannot("a chat model is shown pictures, not PDFs; render the pages first, as polygateway ocr does", "image");
  }
  if (operation === "ocr_text") return null;
  const reader = ocrReaderOf(source);
  if (!readsLayout(source)) {
    const model = `${source.model}, read as ${reader}, tells no places on the page`;
    return cannot(`${model}; OCR_READER dots-ocr or deepseek-ocr and an OCR server do`, "operation");
  }
  const needsSize = reader === "dots-ocr" && size === null;
  return needsSize
    ? cannot("the size of the picture can't be told from its header, and boxes depend on it", "image")
    : null;
}
