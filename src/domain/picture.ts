import type { OcrMediaType } from "./ocr.js";

/** What a picture's first bytes say. Pure; reads nothing beyond the given bytes, whatever lengths they claim. */

export interface PictureSize {
  readonly width: number;
  readonly height: number;
}

const PDF = "%PDF-";
/** Readers accept junk before the header of a PDF within this many bytes (ISO 32000-1, annex H). */
const PDF_HEADER_BYTES = 1_024;
/** In the trailer of every PDF, which readers look for in as many bytes at the end. */
const PDF_TRAILER = "startxref";
const PDF_TRAILER_BYTES = 2_048;

/** The format by content; undefined = none that OCR servers take. */
export function mediaTypeOf(bytes: Buffer): OcrMediaType | undefined {
  if (startsWith(bytes, 0, [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])) return "image/png";
  if (startsWith(bytes, 0, [0xff, 0xd8, 0xff])) return "image/jpeg";
  if (ascii(bytes, 0, 4) === "RIFF" && ascii(bytes, 8, 12) === "WEBP") return "image/webp";
  if (startsWith(bytes, 0, [0x49, 0x49, 0x2a, 0x00]) || startsWith(bytes, 0, [0x4d, 0x4d, 0x00, 0x2a])) {
    return "image/tiff";
  }
  return isPdf(bytes) ? "application/pdf" : undefined;
}

/** What only mentions the header, as a script that writes PDFs does, has no trailer. */
function isPdf(bytes: Buffer): boolean {
  const head = ascii(bytes, 0, PDF_HEADER_BYTES);
  if (/^(?:\xef\xbb\xbf)?\s*%PDF-/.test(head)) return true;
  return head.includes(PDF) && bytes.subarray(-PDF_TRAILER_BYTES).includes(PDF_TRAILER);
}

/** Pixels as the header says them; null where it doesn't, and for a PDF. */
export function pictureSize(bytes: Buffer, mediaType: OcrMediaType): PictureSize | null {
  const read = READERS[mediaType];
  const size = read?.(bytes) ?? null;
  return size !== null && size.width > 0 && size.height > 0 ? size : null;
}

const READERS: Partial<Record<OcrMediaType, (bytes: Buffer) => PictureSize | null>> = {
  "image/png": pngSize,
  "image/jpeg": jpegSize,
  "image/webp": webpSize,
  "image/tiff": tiffSize,
};

function startsWith(bytes: Buffer, at: number, expected: readonly number[]): boolean {
  return bytes.length >= at + expected.length && expected.every((byte, index) => bytes[at + index] === byte);
}

function ascii(bytes: Buffer, from: number, to: number): string {
  return bytes.toString("latin1", from, to);
}

/** IHDR is the first chunk, always. */
function pngSize(bytes: Buffer): PictureSize | null {
  if (bytes.length < 24) return null;
  return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
}

const NO_FRAME = new Set([0xc4, 0xc8, 0xcc]);

/** Walks the segments up to the first start of frame (ITU T.81, B.1.1.3). */
function jpegSize(bytes: Buffer): PictureSize | null {
  let at = 2;
  while (at + 9 <= bytes.length && bytes[at] === 0xff) {
    const marker = bytes[at + 1]!;
    if (marker === 0xff) {
      at += 1;
      continue;
    }
    if (marker >= 0xc0 && marker <= 0xcf && !NO_FRAME.has(marker)) {
      return { width: bytes.readUInt16BE(at + 7), height: bytes.readUInt16BE(at + 5) };
    }
    at += 2 + bytes.readUInt16BE(at + 2);
  }
  return null;
}

/** RFC 9649: three kinds of first chunk. */
function webpSize(bytes: Buffer): PictureSize | null {
  if (bytes.length < 30) return null;
  switch (ascii(bytes, 12, 16)) {
    case "VP8 ":
      return { width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff };
    case "VP8L": {
      const bits = bytes.readUInt32LE(21);
      return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
    }
    case "VP8X":
      return { width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 };
    default:
      return null;
  }
}

const TIFF_WIDTH = 256;
const TIFF_HEIGHT = 257;
const TIFF_SHORT = 3;
const TIFF_LONG = 4;

/** The first image of the file (TIFF 6.0, section 2). */
function tiffSize(bytes: Buffer): PictureSize | null {
  const isLittle = bytes[0] === 0x49;
  const u16 = (at: number): number => (isLittle ? bytes.readUInt16LE(at) : bytes.readUInt16BE(at));
  const u32 = (at: number): number => (isLittle ? bytes.readUInt32LE(at) : bytes.readUInt32BE(at));
  if (bytes.length < 8) return null;
  const directory = u32(4);
  if (directory + 2 > bytes.length) return null;
  const found = new Map<number, number>();
  const entries = u16(directory);
  for (let index = 0; index < entries; index += 1) {
    const at = directory + 2 + index * 12;
    if (at + 12 > bytes.length) break;
    const type = u16(at + 2);
    if (type === TIFF_SHORT) found.set(u16(at), u16(at + 8));
    if (type === TIFF_LONG) found.set(u16(at), u32(at + 8));
  }
  const [width, height] = [found.get(TIFF_WIDTH), found.get(TIFF_HEIGHT)];
  return width === undefined || height === undefined ? null : { width, height };
}
