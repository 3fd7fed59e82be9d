import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, mkdir, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import type { OcrMediaType } from "../domain/ocr.js";
import { mediaTypeOf, TELLING_BYTES } from "../domain/picture.js";
import { DocumentError } from "./pdf.js";

/** Pictures and documents as files, of which no more is read than can be used. */

export interface FileFacts {
  readonly mediaType: OcrMediaType;
  /** Of its bytes: a file that changed is another document. */
  readonly sha256: string;
  /** null: only the digest was wanted. */
  readonly bytes: Buffer | null;
}

export interface FileWish {
  /** In messages. */
  readonly name: string;
  /** Of pictures the bytes too; of PDFs always. */
  readonly wantsPicture: boolean;
  /** Largest picture that may be sent; judged before it is read. */
  readonly maxPictureBytes?: number | undefined;
}

/** Above this nothing can open a PDF, and no server takes a picture. */
const MAX_FILE_BYTES = 2_000_000_000;
const CHUNK_BYTES = 4 * 1024 * 1024;

/** Reads a regular file. Throws DocumentError. */
export async function readDocument(path: string, wish: FileWish): Promise<FileFacts> {
  const { name } = wish;
  try {
    await using file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    const stats = await file.stat();
    if (!stats.isFile()) {
      throw refused(`${name} is ${stats.isDirectory() ? "a folder; name the files in it" : "no file"}`);
    }
    const { size } = stats;
    if (size === 0) throw refused(`${name} is empty`);
    if (size > MAX_FILE_BYTES) {
      throw refused(`${name} has ${size} bytes, more than can be read (${MAX_FILE_BYTES}); split it`);
    }
    const mediaType = await formatOf(file, size);
    if (mediaType === undefined) throw refused(`${name} is neither PNG, JPEG, WebP, TIFF nor PDF by its content`);
    const isPdf = mediaType === "application/pdf";
    const { maxPictureBytes = size } = wish;
    if (!isPdf && size > maxPictureBytes) {
      throw refused(
        `${name} has ${size} bytes, more than ${maxPictureBytes} (MAX_IMAGE_BYTES, maxImageBytes); make it smaller or raise the limit`,
      );
    }
    return { mediaType, ...(await contentOf(file, size, isPdf || wish.wantsPicture)) };
  } catch (error) {
    if (error instanceof DocumentError) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    throw new DocumentError("document", `${name} can't be read: ${TROUBLES[code ?? ""] ?? message}`, error);
  }
}

const TROUBLES: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file",
  EACCES: "this user may not read it",
};

function refused(message: string): DocumentError {
  return new DocumentError("document", message);
}

async function formatOf(file: FileHandle, size: number): Promise<OcrMediaType | undefined> {
  const from = async (position: number): Promise<Buffer> => {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(TELLING_BYTES), 0, TELLING_BYTES, position);
    return buffer.subarray(0, bytesRead);
  };
  return mediaTypeOf(await from(0), await from(Math.max(0, size - TELLING_BYTES)));
}

/** Piece by piece, so that a large file stops nothing else. */
async function contentOf(file: FileHandle, size: number, isWanted: boolean): Promise<Omit<FileFacts, "mediaType">> {
  const hash = createHash("sha256");
  const bytes = isWanted ? Buffer.allocUnsafeSlow(size) : null;
  const chunk = Buffer.allocUnsafe(Math.min(size, CHUNK_BYTES));
  for (let at = 0; at < size; ) {
    const { bytesRead } = await file.read(chunk, 0, Math.min(chunk.length, size - at), at);
    if (bytesRead === 0) throw new Error("it became shorter while it was read");
    const piece = chunk.subarray(0, bytesRead);
    hash.update(piece);
    bytes?.set(piece, at);
    at += bytesRead;
  }
  return { sha256: hash.digest("hex"), bytes };
}

/**
 * Keeps the picture of a page, whole or not at all. What can't be kept is no
 * trouble: it is only looked at, and its page is read.
 */
export async function keepPicture(path: string, bytes: Buffer): Promise<void> {
  const temporary = `${path}.tmp`;
  try {
    await mkdir(dirname(path)).catch(() => {});
    await using file = await open(temporary, "w");
    await file.writeFile(bytes);
    await rename(temporary, path);
  } catch {
    await rm(temporary, { force: true }).catch(() => {});
  }
}
