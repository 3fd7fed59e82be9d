import type { ConfigNote } from "./invariants.js";
import type { Labels } from "./labels.js";
import { EMBEDDING_FIELDS } from "./schema.js";
import { isPlainObject } from "./values.js";

/** What a client is for. */
export type ClientKind = "chat" | "embedding";

/** The options of one scope as they were read. */
export interface ReadOptions {
  readonly options: Record<string, unknown>;
  /** Paths that are reported as broken. */
  readonly broken: Set<string>;
  readonly labels: Labels;
}

/**
 * Leaves out what is the business of another kind of client on the same scope, and says so. `any`: a scope with a batch
 * size is one for embeddings.
 */
export function forClient(read: ReadOptions, wanted: ClientKind | "any", notes: ConfigNote[]): ClientKind {
  const client = wanted === "any" ? (isGiven(read, "batchSize") ? "embedding" : "chat") : wanted;
  if (client === "chat") leaveOutEmbedding(read, notes);
  else leaveOutCache(read, notes);
  return client;
}

function isGiven({ options, broken }: ReadOptions, option: string): boolean {
  return options[option] !== undefined || broken.has(option);
}

function leaveOutEmbedding(read: ReadOptions, notes: ConfigNote[]): void {
  const given = Object.keys(EMBEDDING_FIELDS).filter((option) => isGiven(read, option));
  if (given.length === 0) return;
  const key = given.map((option) => read.labels.key(option)).join(", ");
  const isForEmbedding = given.includes("batchSize");
  const text = isForEmbedding
    ? "is read by EmbeddingClient alone"
    : "is read by EmbeddingClient alone, which also needs BATCH_SIZE";
  notes.push({ key, level: isForEmbedding ? "note" : "warning", text });
  for (const option of given) {
    delete read.options[option];
    read.broken.delete(option);
  }
}

/** Embeddings are never cached (spec 04). */
function leaveOutCache({ options, broken, labels }: ReadOptions, notes: ConfigNote[]): void {
  const given = isPlainObject(options.cache) ? Object.keys(options.cache) : [];
  const keys = given.map((option) => labels.key(`cache.${option}`)).filter((key) => !OF_THE_PROCESS.test(key));
  if (keys.length > 0) {
    const text = "is read by GatewayClient alone: embeddings are never cached";
    notes.push({ key: keys.join(", "), level: "note", text });
  }
  delete options.cache;
  for (const path of [...broken]) if (path === "cache" || path.startsWith("cache.")) broken.delete(path);
}

/** A default for all scopes is meant for those that can use it. */
const OF_THE_PROCESS = /^PGW_|(?:^| )process\./;
