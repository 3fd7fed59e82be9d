import type { Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from "node:zlib";

/** A chain of more codings than this is an attack, not a server. */
export const MAX_CODINGS = 2;
const NO_CODINGS: readonly string[] = [];

export interface InflateObserver {
  onData(chunk: Buffer): void;
  onEnd(): void;
  /** `cut`: the compressed bytes ended too early. `hostile`: bad data, an unknown coding, or more than the cap. */
  onError(kind: "cut" | "hostile", message: string): void;
}

/** Inflates an answer that came compressed although `identity` was asked for. */
export interface Inflater {
  /** False: wait for the drain callback before more is written. */
  write(chunk: Buffer): boolean;
  end(): void;
  pause(): void;
  resume(): void;
  destroy(): void;
}

function isZlibWrapped(first: Buffer): boolean {
  return (first[0]! & 0x0f) === 8;
}

function createStage(coding: string, first: Buffer): Transform | undefined {
  if (coding === "gzip" || coding === "x-gzip") return createGunzip();
  if (coding === "br") return createBrotliDecompress();
  if (coding === "deflate") return isZlibWrapped(first) ? createInflate() : createInflateRaw();
  return undefined;
}

/** "" and identity are no coding. */
export function contentCodings(header: string | undefined): readonly string[] {
  if (header === undefined) return NO_CODINGS;
  return header
    .toLowerCase()
    .split(",")
    .map((coding) => coding.trim())
    .filter((coding) => coding !== "" && coding !== "identity");
}

/** Only what looks like the name of a coding is quoted. */
function named(codings: readonly string[]): string {
  const known = codings.length <= 8 && codings.every((coding) => /^[a-z0-9-]{1,16}$/.test(coding));
  return known ? ` "${codings.join(", ")}"` : "";
}

class ZlibInflater implements Inflater {
  readonly #codings: readonly string[];
  readonly #maxBytes: number;
  readonly #observer: InflateObserver;
  readonly #onDrain: () => void;
  #stages: Transform[] = [];
  #bytes = 0;
  #closed = false;

  constructor(codings: readonly string[], maxBytes: number, observer: InflateObserver, onDrain: () => void) {
    this.#codings = codings;
    this.#maxBytes = maxBytes;
    this.#observer = observer;
    this.#onDrain = onDrain;
  }

  write(chunk: Buffer): boolean {
    if (this.#closed) return true;
    if (this.#stages.length === 0 && !this.#build(chunk)) return true;
    return this.#stages[0]!.write(chunk);
  }

  end(): void {
    if (this.#closed) return;
    if (this.#stages.length === 0) {
      this.#closed = true;
      this.#observer.onEnd();
      return;
    }
    this.#stages[0]!.end();
  }

  pause(): void {
    this.#stages.at(-1)?.pause();
  }

  resume(): void {
    this.#stages.at(-1)?.resume();
  }

  destroy(): void {
    this.#closed = true;
    for (const stage of this.#stages) stage.destroy();
  }

  #fail(kind: "cut" | "hostile", message: string): void {
    if (this.#closed) return;
    this.destroy();
    this.#observer.onError(kind, message);
  }

  /** Codings are listed in the order they were applied, so they are undone from the last. */
  #build(first: Buffer): boolean {
    const codings = [...this.#codings].reverse();
    for (const coding of codings) {
      const stage = codings.length > MAX_CODINGS ? undefined : createStage(coding, first);
      if (stage === undefined) {
        this.#fail("hostile", `the answer's content-encoding${named(this.#codings)} is not supported`);
        return false;
      }
      stage.on("error", (error: NodeJS.ErrnoException) => {
        this.#fail(
          error.code === "Z_BUF_ERROR" ? "cut" : "hostile",
          `the compressed answer is broken: ${error.message}`,
        );
      });
      this.#stages.at(-1)?.pipe(stage);
      this.#stages.push(stage);
    }
    this.#stages[0]!.on("drain", this.#onDrain);
    const last = this.#stages.at(-1)!;
    last.on("data", (chunk: Buffer) => this.#deliver(chunk));
    last.on("end", () => {
      if (this.#closed) return;
      this.#closed = true;
      this.#observer.onEnd();
    });
    return true;
  }

  #deliver(chunk: Buffer): void {
    if (this.#closed) return;
    this.#bytes += chunk.length;
    if (this.#bytes > this.#maxBytes) {
      this.#fail("hostile", `the answer inflates to more than ${this.#maxBytes} bytes`);
      return;
    }
    this.#observer.onData(chunk);
  }
}

/** The cap counts decoded bytes: 172 bytes of brotli can hold 100 MiB. */
export function createInflater(
  codings: readonly string[],
  maxBytes: number,
  observer: InflateObserver,
  onDrain: () => void,
): Inflater {
  return new ZlibInflater(codings, maxBytes, observer, onDrain);
}
