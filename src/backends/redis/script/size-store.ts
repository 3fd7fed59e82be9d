import type { TokenBook, TokenRecord } from "../../../domain/scheduling/token-learning.js";
import { SIZES_KEY } from "./keys.js";

/** Tags are the caller's: one a call must not fill the server. */
const MOST_RECORDS = 4_096;

/** What the calls of all models use, in one hash over models and tags; read when asked, written with `save`. */
export class SizeStore {
  private readonly books: SizeBook[] = [];

  constructor(private readonly prefix: string) {}

  bookOf(model: string): TokenBook {
    const book = new SizeBook(this.prefix + SIZES_KEY, model);
    this.books.push(book);
    return book;
  }

  save(ttlMs: number): void {
    for (const book of this.books) book.save(ttlMs);
  }
}

/** Of one model. A tick asks for the same few tags again and again. */
class SizeBook implements TokenBook {
  /** false = nothing is known. */
  private readonly known: Record<string, TokenRecord | false> = {};
  private readonly packed: Record<string, string> = {};

  constructor(
    private readonly key: string,
    private readonly model: string,
  ) {}

  get(tag: string): TokenRecord | undefined {
    let known = this.known[tag];
    if (known === undefined) {
      known = this.read(tag);
      this.known[tag] = known;
    }
    return known === false ? undefined : known;
  }

  add(tag: string, record: TokenRecord): void {
    this.known[tag] = record;
  }

  save(ttlMs: number): void {
    for (const tag in this.known) {
      const record = this.known[tag]!;
      if (record === false) continue;
      const packed = packedRecord(record);
      if (packed === this.packed[tag]) continue;
      if (this.packed[tag] === undefined) makeRoom(this.key);
      redis.call("HSET", this.key, this.fieldOf(tag), packed);
      redis.call("PEXPIRE", this.key, ttlMs);
    }
  }

  private read(tag: string): TokenRecord | false {
    const packed = redis.call("HGET", this.key, this.fieldOf(tag));
    if (typeof packed !== "string") return false;
    const [samples, inRatio, outTokens, inDeviation, outDeviation] = cmsgpack.unpack(packed) as number[];
    if (outDeviation === undefined) return false;
    this.packed[tag] = packed;
    return {
      samples: samples!,
      inRatio: inRatio!,
      outTokens: outTokens!,
      inDeviation: inDeviation!,
      outDeviation,
    };
  }

  private fieldOf(tag: string): string {
    return redis.sha1hex(`${this.model}\n${tag}`);
  }
}

function packedRecord({ samples, inRatio, outTokens, inDeviation, outDeviation }: TokenRecord): string {
  return cmsgpack.pack([samples, inRatio, outTokens, inDeviation, outDeviation]);
}

function makeRoom(key: string): void {
  if ((tonumber(redis.call("HLEN", key)) ?? 0) < MOST_RECORDS) return;
  const [any] = redis.call("HRANDFIELD", key, 1) as string[];
  if (any !== undefined) redis.call("HDEL", key, any);
}
