import { isOcrTransport } from "../domain/ocr.js";
import type { Field } from "./field.js";
import type { ConfigNote } from "./invariants.js";
import type { Labels } from "./labels.js";
import { EMBEDDING_FIELDS, OCR_FIELDS } from "./schema.js";
import { isPlainObject } from "./values.js";

/** What a client is for. */
export type ClientKind = "chat" | "embedding" | "ocr";

/** What each kind of client is called. */
export const CLIENT_NAMES: Readonly<Record<ClientKind, string>> = {
  chat: "GatewayClient",
  embedding: "EmbeddingClient",
  ocr: "OcrClient",
};

/** Only chat answers are cached (spec 04). */
export const NEVER_CACHED: Readonly<Record<Exclude<ClientKind, "chat">, string>> = {
  embedding: "embeddings are never cached",
  ocr: "OCR is never cached",
};

const OWN_FIELDS: Readonly<Record<Exclude<ClientKind, "chat">, Readonly<Record<string, Field>>>> = {
  embedding: EMBEDDING_FIELDS as Readonly<Record<string, Field>>,
  ocr: OCR_FIELDS as Readonly<Record<string, Field>>,
};

/** Names of the options that only this kind of client knows. */
export function ownOptions(client: ClientKind): readonly string[] {
  return client === "chat" ? [] : Object.keys(OWN_FIELDS[client]);
}

/** The options of one scope as they were read. */
export interface ReadOptions {
  readonly options: Record<string, unknown>;
  /** Paths that are reported as broken. */
  readonly broken: Set<string>;
  readonly labels: Labels;
}

/**
 * Leaves out what is the business of another kind of client on the same scope, and says so. `any`: a scope with a batch
 * size is one for embeddings, one with a source that speaks an OCR server's protocol one for OCR.
 */
export function forClient(read: ReadOptions, wanted: ClientKind | "any", notes: ConfigNote[]): ClientKind {
  const client = wanted === "any" ? kindOf(read) : wanted;
  if (client !== "embedding") leaveOutEmbedding(read, notes);
  if (client !== "ocr") leaveOutOcr(read, notes);
  if (client !== "chat") leaveOutCache(read, client, notes);
  return client;
}

function kindOf(read: ReadOptions): ClientKind {
  if (isGiven(read, "batchSize")) return "embedding";
  const { sources } = read.options;
  const isOcr =
    Array.isArray(sources) && sources.some((source) => isPlainObject(source) && isOcrTransport(source.transport));
  return isOcr ? "ocr" : "chat";
}

function isGiven({ options, broken }: ReadOptions, option: string): boolean {
  return options[option] !== undefined || broken.has(option);
}

function leaveOutEmbedding(read: ReadOptions, notes: ConfigNote[]): void {
  const isForEmbedding = isGiven(read, "batchSize");
  const text = isForEmbedding
    ? "is read by EmbeddingClient alone"
    : "is read by EmbeddingClient alone, which also needs BATCH_SIZE";
  leaveOut(read, "embedding", { level: isForEmbedding ? "note" : "warning", text }, notes);
}

function leaveOutOcr(read: ReadOptions, notes: ConfigNote[]): void {
  leaveOut(read, "ocr", { level: "warning", text: "is read by OcrClient alone" }, notes);
}

function leaveOut(
  read: ReadOptions,
  client: Exclude<ClientKind, "chat">,
  note: Omit<ConfigNote, "key">,
  notes: ConfigNote[],
): void {
  const given = ownOptions(client).filter((option) => isGiven(read, option));
  if (given.length === 0) return;
  notes.push({ key: given.map((option) => read.labels.key(option)).join(", "), ...note });
  for (const option of given) {
    delete read.options[option];
    read.broken.delete(option);
  }
}

function leaveOutCache(
  { options, broken, labels }: ReadOptions,
  client: Exclude<ClientKind, "chat">,
  notes: ConfigNote[],
): void {
  const given = isPlainObject(options.cache) ? Object.keys(options.cache) : [];
  const keys = given.map((option) => labels.key(`cache.${option}`)).filter((key) => !OF_THE_PROCESS.test(key));
  if (keys.length > 0) {
    const text = `is read by GatewayClient alone: ${NEVER_CACHED[client]}`;
    notes.push({ key: keys.join(", "), level: "note", text });
  }
  delete options.cache;
  for (const path of [...broken]) if (path === "cache" || path.startsWith("cache.")) broken.delete(path);
}

/** A default for all scopes is meant for those that can use it. */
const OF_THE_PROCESS = /^PGW_|(?:^| )process\./;
