import { createHmac, timingSafeEqual } from "node:crypto";
import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";

/**
 * How an answer lies in Redis: mark, kind, seal, text. The seal ties the text to its key: what was cut, changed, put under
 * another key or written by somebody else's program is not taken for an answer. Whoever doesn't know `salt` can't make one.
 */
export interface EntryTerms {
  readonly key: string;
  readonly salt: string;
  /** Longest text, in bytes; it is never unpacked further. */
  readonly maxBytes: number;
}

const MARK = Buffer.from("pgw1");
const PLAIN = 0;
const GZIP = 1;
const SEAL_BYTES = 16;
const HEADER_BYTES = MARK.length + 1 + SEAL_BYTES;
/** Shorter texts gain nothing from it (spec 04). */
const GZIP_FROM_BYTES = 4_096;

const compress = promisify(gzip);
const decompress = promisify(gunzip);

/** null = too large to be kept. */
export async function packEntry(text: string, terms: EntryTerms): Promise<Buffer | null> {
  const bytes = Buffer.from(text);
  if (bytes.length > terms.maxBytes) return null;
  const packed = bytes.length > GZIP_FROM_BYTES ? await compress(bytes, { level: 3 }) : bytes;
  // What doesn't shrink is kept as it is, so no entry is longer than its text.
  const kind = packed.length < bytes.length ? GZIP : PLAIN;
  const payload = kind === GZIP ? packed : bytes;
  return Buffer.concat([MARK, Buffer.from([kind]), sealOf(kind, payload, terms), payload]);
}

/** How many bytes of a value are ever asked for: one more than an entry may have, to see that it is too long. */
export function readLimit({ maxBytes }: EntryTerms): number {
  return HEADER_BYTES + maxBytes + 1;
}

/** The text that was packed. Throws for anything else. */
export async function unpackEntry(entry: Buffer, terms: EntryTerms): Promise<string> {
  if (entry.length >= readLimit(terms)) throw new Error("the entry is longer than any answer may be");
  const kind = entry[MARK.length];
  const isOurs = entry.subarray(0, MARK.length).equals(MARK) && (kind === PLAIN || kind === GZIP);
  if (!isOurs || entry.length < HEADER_BYTES) throw new Error("the entry is none of ours");
  const payload = entry.subarray(HEADER_BYTES);
  const seal = entry.subarray(MARK.length + 1, HEADER_BYTES);
  if (!timingSafeEqual(seal, sealOf(kind, payload, terms))) throw new Error("the entry is damaged, or another key's");
  const text = kind === GZIP ? await decompress(payload, { maxOutputLength: terms.maxBytes }) : payload;
  return text.toString("utf8");
}

function sealOf(kind: number, payload: Buffer, { key, salt }: EntryTerms): Buffer {
  return createHmac("sha256", salt).update(`${kind}\0${key}\0`).update(payload).digest().subarray(0, SEAL_BYTES);
}
