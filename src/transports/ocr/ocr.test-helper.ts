import type { OcrImage } from "../../domain/ocr.js";
import type { SourceConfig } from "../../domain/source.js";
import type { OcrAttempt } from "../../ports/transport.js";
import { TestContext } from "../attempt.test-helper.js";

/** A picture of this size; servers in tests read nothing of its bytes. */
export function picture(width = 1_200, height = 800): OcrImage {
  return { bytes: Buffer.from("\x89PNG picture"), mediaType: "image/png", size: { width, height } };
}

export const SIZELESS: OcrImage = { ...picture(), size: null };
export const PDF: OcrImage = { bytes: Buffer.from("%PDF-1.7"), mediaType: "application/pdf", size: null };

export function ocrAttempt(source: SourceConfig, image: OcrImage = picture(), context = new TestContext()): OcrAttempt {
  return { source, image, context };
}

/** The error of a promise that must reject. */
export async function failure(promise: Promise<unknown>): Promise<Record<string, unknown> & Error> {
  return promise.then(
    (value) => {
      throw new Error(`no error but ${JSON.stringify(value)}`);
    },
    (error: unknown) => error as Record<string, unknown> & Error,
  );
}
