import type { TokenBook, TokenRecord } from "../../../domain/scheduling/token-learning.js";
import { SIZES_KEY } from "./keys.js";

/** Tags are the caller's: one a call must not fill the server. */
const MOST_RECORDS = 4_096;

/** What the calls of a model use, in one hash over all models and tags; read when asked, written with `save`. */
export class SizeStore {
  private readonly known: Record<string, TokenRecord> = {};
  private readonly packed: Record<string, string> = {};
  private readonly absent: Record<string, boolean> = {};

  constructor(private readonly prefix: string) {}

  bookOf(model: string): TokenBook {
    return {
      get: (tag) => this.get(fieldOf(model, tag)),
      add: (tag, record) => {
        this.known[fieldOf(model, tag)] = record;
      },
    };
  }

  save(ttlMs: number): void {
    const key = this.prefix + SIZES_KEY;
    for (const field in this.known) {
      const record = this.known[field]!;
      const packed = cmsgpack.pack([
        record.samples,
        record.inRatio,
        record.outTokens,
        record.inDeviation,
        record.outDeviation,
      ]);
      if (packed === this.packed[field]) continue;
      if (this.absent[field] === true) makeRoom(key);
      redis.call("HSET", key, field, packed);
      redis.call("PEXPIRE", key, ttlMs);
    }
  }

  private get(field: string): TokenRecord | undefined {
    const known = this.known[field];
    if (known !== undefined || this.absent[field] === true) return known;
    const packed = redis.call("HGET", this.prefix + SIZES_KEY, field);
    if (typeof packed !== "string") {
      this.absent[field] = true;
      return undefined;
    }
    const [samples, inRatio, outTokens, inDeviation, outDeviation] = cmsgpack.unpack(packed) as number[];
    const record: TokenRecord = {
      samples: samples!,
      inRatio: inRatio!,
      outTokens: outTokens!,
      inDeviation: inDeviation!,
      outDeviation: outDeviation!,
    };
    this.known[field] = record;
    this.packed[field] = packed;
    return record;
  }
}

function makeRoom(key: string): void {
  if ((tonumber(redis.call("HLEN", key)) ?? 0) < MOST_RECORDS) return;
  const [any] = redis.call("HRANDFIELD", key, 1) as string[];
  if (any !== undefined) redis.call("HDEL", key, any);
}

function fieldOf(model: string, tag: string): string {
  return redis.sha1hex(`${model}\n${tag}`);
}
