/** Bytes of an error body that are read before the connection is dropped (spec 02 "Body digest"). */
export const MAX_ERROR_BODY_BYTES = 64 * 1_024;
/** A status is acted on: its body may take this much longer. */
export const ERROR_BODY_MS = 1_000;
/** After the answer: what is drained so that the socket can be reused. */
export const DRAIN_BYTES = 64 * 1_024;
export const DRAIN_MS = 100;

/** Larger bodies are put together in memory of their own. */
const SHARED_BYTES = 4 * 1_024 * 1_024;
let shared: Buffer | undefined;

/** A body that is read as a whole, up to a cap. */
export class BodyBuffer {
  #chunks: Buffer[] = [];
  #bytes = 0;

  /** false = it doesn't fit any more; what fits is kept. */
  keep(chunk: Buffer, maxBytes: number): boolean {
    const room = maxBytes - this.#bytes;
    this.#chunks.push(chunk.length > room ? chunk.subarray(0, room) : chunk);
    this.#bytes += Math.min(chunk.length, room);
    return chunk.length <= room;
  }

  bytes(): Buffer {
    const chunks = this.#chunks;
    return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
  }

  /** The same in memory that the next body is put into as well: only for who is done with it in the same turn. */
  sharedBytes(): Buffer {
    if (this.#chunks.length === 1 || this.#bytes > SHARED_BYTES) return this.bytes();
    shared ??= Buffer.allocUnsafeSlow(SHARED_BYTES);
    let at = 0;
    for (const chunk of this.#chunks) at += chunk.copy(shared, at);
    return shared.subarray(0, at);
  }

  text(): string {
    return this.bytes().toString("utf8");
  }
}
