import { crc32, createInflateRaw } from "node:zlib";
import { countOf } from "../../domain/count-of.js";
import type { ZipEntry } from "./zip-directory.js";

/** The most that members may become, all counted in bytes that came out. */
export interface InflateCaps {
  readonly maxBytes: number;
  /** Left of what all members together may become. */
  readonly budgetBytes: number;
  /** Bytes out for one byte in; what is small is never judged by it. */
  readonly maxRatio: number;
}

/** Smaller members may be as dense as they like: a page of blanks is no bomb. */
const RATIO_FREE_BYTES = 1_024 * 1_024;
const DEFLATE = 8;
/** Of a stored member at once: the event loop gets its turn in between. */
const STORED_STEP_BYTES = 1_024 * 1_024;
const INFLATE_CHUNK_BYTES = 128 * 1_024;

/**
 * The bytes of one member, or what is wrong with it. Inflating runs beside the event loop and stops at the first byte
 * beyond a cap or beyond the size that the archive tells.
 *
 * @param isStopped asked between two pieces; true = nobody waits for the result any more
 */
export function readMember(
  archive: Buffer,
  entry: ZipEntry,
  caps: InflateCaps,
  isStopped: () => boolean,
): Promise<Buffer | string> {
  const { bytes, method, dataStart, packedBytes } = entry;
  const claimed = capProblem(bytes, packedBytes, caps);
  if (claimed !== undefined) return Promise.resolve(claimed);
  const packed = archive.subarray(dataStart, dataStart + packedBytes);
  if (method === 0) return readStored(packed, entry, isStopped);
  if (method === DEFLATE) return inflate(packed, entry, isStopped);
  return Promise.resolve(`is packed by method ${method}; only deflate and stored can be read`);
}

/** A size that is too large as told isn't even tried; one that is told too small ends at the size that was told. */
function capProblem(bytes: number, packedBytes: number, caps: InflateCaps): string | undefined {
  const { maxBytes, budgetBytes, maxRatio } = caps;
  if (bytes > maxBytes) return `inflates to more than ${maxBytes} bytes`;
  if (bytes > budgetBytes) return "inflates, together with the members before it, to more than is allowed";
  if (bytes > RATIO_FREE_BYTES && bytes > maxRatio * packedBytes)
    return `inflates to more than ${maxRatio} times its size`;
  return undefined;
}

const STOPPED = "was not read to its end";
const WRONG_CRC = "is damaged: its checksum doesn't match";

async function readStored(packed: Buffer, entry: ZipEntry, isStopped: () => boolean): Promise<Buffer | string> {
  let crc = 0;
  for (let at = 0; at < packed.length; at += STORED_STEP_BYTES) {
    if (isStopped()) return STOPPED;
    crc = crc32(packed.subarray(at, at + STORED_STEP_BYTES), crc);
    await new Promise<void>((resolve) => void setImmediate(resolve));
  }
  return crc === entry.crc ? packed : WRONG_CRC;
}

function inflate(packed: Buffer, entry: ZipEntry, isStopped: () => boolean): Promise<Buffer | string> {
  return new Promise((resolve) => {
    const inflater = createInflateRaw({ chunkSize: INFLATE_CHUNK_BYTES });
    const chunks: Buffer[] = [];
    let bytes = 0;
    let crc = 0;
    const end = (result: Buffer | string) => {
      inflater.destroy();
      resolve(result);
    };
    inflater.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (isStopped()) return end(STOPPED);
      if (bytes > entry.bytes) return end(`inflates to more than the ${countOf(entry.bytes, "byte")} that it tells`);
      crc = crc32(chunk, crc);
      chunks.push(chunk);
    });
    inflater.on("error", (error: NodeJS.ErrnoException) => {
      end(error.code === "Z_BUF_ERROR" ? "is cut" : `is damaged (${error.code ?? "unknown data"})`);
    });
    inflater.on("end", () => {
      if (bytes !== entry.bytes || inflater.bytesWritten !== packed.length) end("has another size than it tells");
      else end(crc === entry.crc ? Buffer.concat(chunks, bytes) : WRONG_CRC);
    });
    inflater.end(packed);
  });
}
