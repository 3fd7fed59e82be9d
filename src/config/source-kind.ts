import { isOcrTransport, OCR_TRANSPORTS } from "../domain/ocr.js";
import { CLIENT_NAMES, type ClientKind } from "./client-kind.js";
import type { OptionReader } from "./reader.js";

/** What a source's protocol decides: who may use it, and what suits it where nobody said. */

/** A page takes an OCR server long, and others may be before it. */
const OCR_TIMEOUT_MS = 300_000;

/**
 * Values that suit an OCR server where none were given (reference-providers §1.1): MonkeyOCR has one lock and no 429, so
 * requests beyond the first only wait in it.
 */
export function suitingDefaults(given: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { transport } = given;
  if (!isOcrTransport(transport) || transport === "vlm") return {};
  return {
    ...(given.timeoutMs === undefined ? { timeoutMs: OCR_TIMEOUT_MS } : {}),
    ...(given.maxConcurrency === undefined && transport === "monkey-ocr" ? { maxConcurrency: 1 } : {}),
  };
}

/** Reports a source that this kind of client can't talk to. */
export function checkTransport(reader: OptionReader, path: string, transport: string, client: ClientKind): void {
  const isOcr = isOcrTransport(transport);
  if (isOcr === (client === "ocr") || !reader.usable(path)) return;
  if (isOcr) {
    const problem = `${transport} is the protocol of an OCR server, which ${CLIENT_NAMES[client]} can't use`;
    reader.report(path, problem, "Leave it out, or put the source into a scope of its own for OcrClient.");
    return;
  }
  const problem = `${transport} is no protocol for OCR`;
  const known = OCR_TRANSPORTS.join(", ");
  reader.report(path, problem, `Say which it is: ${known}. A chat model that can see is vlm.`);
}
