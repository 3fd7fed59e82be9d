import type { OcrMediaType } from "./ocr.js";

/** What a picture's first bytes say. Pure; reads nothing beyond the given bytes, whatever lengths they claim. */

export interface PictureSize {
  readonly width: number;
  readonly height: number;
}

const PDF = "%PDF-";
/** Readers accept junk before the header of a PDF within this many bytes (ISO 32000-1, annex H). */
const PDF_HEADER_BYTES = 1_024;
/** And after its end. */
const PDF_END_BYTES = 2_048;
/** A byte order mark, as text or as Latin-1 shows it, and blanks. */
const NOTHING = /^(?:\u00ef\u00bb\u00bf)?[\s\0]{0,1024}$/;

/** So many bytes of a file's beginning and end tell its format. */
export const TELLING_BYTES = PDF_END_BYTES;

/**
 * The format by content; undefined = none that OCR servers take. `end`: the last bytes of a file, of which `bytes` may be the
 * first alone.
 */
export function mediaTypeOf(bytes: Buffer, end: Buffer = bytes): OcrMediaType | undefined {
  if (startsWith(bytes, 0, [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])) return "image/png";
  if (startsWith(bytes, 0, [0xff, 0xd8, 0xff])) return "image/jpeg";
  if (ascii(bytes, 0, 4) === "RIFF" && ascii(bytes, 8, 12) === "WEBP") return "image/webp";
  if (startsWith(bytes, 0, [0x49, 0x49, 0x2a, 0x00]) || startsWith(bytes, 0, [0x4d, 0x4d, 0x00, 0x2a])) {
    return "image/tiff";
  }
  return isPdf(bytes, end) ? "application/pdf" : undefined;
}

/** With junk before its header, as of an HTTP answer, only what ends like a PDF is one: a script that writes PDFs is none. */
function isPdf(bytes: Buffer, end: Buffer): boolean {
  const head = ascii(bytes, 0, PDF_HEADER_BYTES);
  const at = head.indexOf(PDF);
  if (at === -1) return false;
  if (NOTHING.test(head.slice(0, at))) return true;
  const tail = ascii(end, Math.max(0, end.length - PDF_END_BYTES), end.length);
  return /^%PDF-[12]\.\d/.test(head.slice(at)) && tail.includes("startxref") && tail.includes("%%EOF");
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

/** More is no document, but a chain that was made to be long. */
const MAX_FRAMES = 10_000;
const TIFF_ENTRY_BYTES = 12;

function tiffNumbers(bytes: Buffer) {
  const isLittle = bytes[0] === 0x49;
  const u16 = (at: number): number => (isLittle ? bytes.readUInt16LE(at) : bytes.readUInt16BE(at));
  const u32 = (at: number): number => (isLittle ? bytes.readUInt32LE(at) : bytes.readUInt32BE(at));
  return { u16, u32 };
}

/** Images of a TIFF, each a page; at least 1. */
export function framesOf(bytes: Buffer): number {
  if (bytes.length < 8) return 1;
  const { u16, u32 } = tiffNumbers(bytes);
  const seen = new Set<number>();
  let at = u32(4);
  while (at !== 0 && at + 2 <= bytes.length && !seen.has(at) && seen.size < MAX_FRAMES) {
    seen.add(at);
    const next = at + 2 + u16(at) * TIFF_ENTRY_BYTES;
    at = next + 4 <= bytes.length ? u32(next) : 0;
  }
  return Math.max(1, seen.size);
}

/** The first image of the file (TIFF 6.0, section 2). */
function tiffSize(bytes: Buffer): PictureSize | null {
  if (bytes.length < 8) return null;
  const { u16, u32 } = tiffNumbers(bytes);
  const directory = u32(4);
  if (directory + 2 > bytes.length) return null;
  const found = new Map<number, number>();
  const entries = u16(directory);
  for (let index = 0; index < entries; index += 1) {
    const at = directory + 2 + index * TIFF_ENTRY_BYTES;
    if (at + TIFF_ENTRY_BYTES > bytes.length) break;
    const type = u16(at + 2);
    if (type === TIFF_SHORT) found.set(u16(at), u16(at + 8));
    if (type === TIFF_LONG) found.set(u16(at), u32(at + 8));
  }
  const [width, height] = [found.get(TIFF_WIDTH), found.get(TIFF_HEIGHT)];
  return width === undefined || height === undefined ? null : { width, height };
}
