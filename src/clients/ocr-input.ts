import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { OcrImage, OcrOperation } from "../domain/ocr.js";
import { mediaTypeOf, pictureSize } from "../domain/picture.js";
import { RequestRejectedError } from "../errors.js";

/** What one reading of an input needs to know. */
export interface ImageLimits {
  readonly operation: OcrOperation;
  readonly maxImageBytes: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Bytes, a Blob, a path or a file URL as the picture it is, by its content. Throws RequestRejectedError for what can't be
 * read, is too large or is no picture that OCR servers take, and exactly the reason of the signal.
 */
export async function readImage(input: unknown, limits: ImageLimits): Promise<OcrImage> {
  limits.signal?.throwIfAborted();
  const bytes = await bytesOf(input, limits);
  limits.signal?.throwIfAborted();
  if (bytes.length === 0) reject(limits, "the image is empty");
  const mediaType = mediaTypeOf(bytes);
  if (mediaType === undefined) {
    reject(limits, "the image is neither PNG, JPEG, WebP, TIFF nor PDF by its content", "unsupported_modality");
  }
  return { bytes, mediaType, size: pictureSize(bytes, mediaType) };
}

async function bytesOf(input: unknown, limits: ImageLimits): Promise<Buffer> {
  if (typeof input === "string") return readPath(input, limits);
  if (input instanceof URL) {
    if (input.protocol !== "file:")
      reject(limits, `an image by ${input.protocol} address is not fetched; give its bytes`);
    return readPath(pathOf(input, limits), limits);
  }
  if (input instanceof Blob) {
    checkSize(input.size, limits);
    return Buffer.from(await input.arrayBuffer());
  }
  // A copy: what the caller does with the bytes while the call waits changes nothing.
  if (ArrayBuffer.isView(input)) {
    checkSize(input.byteLength, limits);
    return copyOf(input.buffer, limits, input.byteOffset, input.byteLength);
  }
  if (input instanceof ArrayBuffer) {
    checkSize(input.byteLength, limits);
    return copyOf(input, limits);
  }
  return reject(limits, "the image must be bytes, a Blob, a path or a file: URL");
}

function copyOf(memory: ArrayBufferLike, limits: ImageLimits, at = 0, bytes = memory.byteLength): Buffer {
  try {
    return Buffer.from(new Uint8Array(memory, at, bytes));
  } catch {
    return reject(limits, "the image's bytes are gone: their ArrayBuffer was handed over (detached)");
  }
}

function pathOf(url: URL, limits: ImageLimits): string {
  try {
    return fileURLToPath(url);
  } catch {
    return reject(limits, "the image's file: URL names no file of this machine");
  }
}

/** Reads no more than may be sent, of a regular file only: a pipe may never answer, a device never end. */
async function readPath(given: string, limits: ImageLimits): Promise<Buffer> {
  const path = /^file:/i.test(given) && URL.canParse(given) ? pathOf(new URL(given), limits) : given;
  if (path === "") reject(limits, "the image's path is empty");
  let file: FileHandle | undefined;
  try {
    file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    const stats = await file.stat();
    if (stats.isFile()) {
      checkSize(stats.size, limits);
      return await file.readFile({ ...(limits.signal === undefined ? {} : { signal: limits.signal }) });
    }
    return reject(
      limits,
      `the image file ${path} can't be read: it is ${stats.isDirectory() ? "a folder" : "no file"}`,
    );
  } catch (error) {
    limits.signal?.throwIfAborted();
    if (RequestRejectedError.isInstance(error)) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    return reject(limits, `the image file ${path} can't be read: ${FILE_TROUBLES[code ?? ""] ?? message}`);
  } finally {
    await file?.close();
  }
}

const FILE_TROUBLES: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file",
  EISDIR: "it is a folder",
  EACCES: "this user may not read it",
};

function checkSize(bytes: number, limits: ImageLimits): void {
  if (bytes <= limits.maxImageBytes) return;
  const most = `${limits.maxImageBytes} bytes (MAX_IMAGE_BYTES, maxImageBytes)`;
  reject(limits, `the image has ${bytes} bytes, more than ${most}; make it smaller or raise the limit`);
}

function reject(
  { operation }: ImageLimits,
  problem: string,
  code: "bad_request" | "unsupported_modality" = "bad_request",
): never {
  throw new RequestRejectedError(`${problem}; nothing was sent`, { code, operation });
}
