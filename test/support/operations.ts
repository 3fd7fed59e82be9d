import type { GatewayOptions } from "../../src/config/options.js";
import type { ChatRequest } from "../../src/domain/chat.js";
import type { OcrAnswerFacts, OcrCallOptions, OcrTransportName } from "../../src/domain/ocr.js";
import type { OperationKind } from "../../src/domain/record.js";
import { OcrClient } from "../../src/gateway/ocr-client.js";
import { EmbeddingClient, GatewayClient } from "../../src/gateway.js";
import type { ChatTransport, EmbeddingTransport, OcrAttempt, OcrTransport } from "../../src/ports/transport.js";
import { pngOf } from "../ocr/pictures.js";

/**
 * Every kind of call that runs on the one loop (spec 02 §2). Tables of what the loop promises run once for each of them:
 * a new kind is one entry here.
 */

/** What the tests say of a call; a kind that doesn't know a wish leaves it out. */
export interface CallWishes {
  readonly model?: string;
  readonly deadlineMs?: number;
  readonly signal?: AbortSignal;
  readonly stream?: false;
  /** More than a thousand tokens to send. */
  readonly large?: boolean;
}

export interface CallEnd {
  readonly attempts: number;
  readonly sourceName: string;
}

/** A client as far as all kinds are alike. */
export interface OperationClient {
  call(wishes?: CallWishes): Promise<CallEnd>;
  snapshot: GatewayClient["snapshot"];
  close(): Promise<void>;
}

export interface LoopOperation {
  readonly kind: OperationKind;
  /** Of a scope's options, whatever kind they were written for; a transport of chat answers in its place. */
  open(options: Omit<GatewayOptions, "cache">): OperationClient;
}

const WORDS = "words ".repeat(4_000);

const requestOf = ({ large, ...wishes }: CallWishes): ChatRequest => ({
  messages: [{ role: "user", content: large === true ? WORDS : "hi" }],
  ...wishes,
});

function chatClient(
  options: GatewayOptions,
  ask: (client: GatewayClient, request: ChatRequest) => Promise<CallEnd>,
): OperationClient {
  const client = new GatewayClient(options);
  return {
    call: (wishes = {}) => ask(client, requestOf(wishes)),
    snapshot: () => client.snapshot(),
    close: () => client.close(),
  };
}

async function readStream(client: GatewayClient, request: ChatRequest): Promise<CallEnd> {
  const stream = client.stream(request);
  for await (const _event of stream);
  return stream.final;
}

/** What a scripted transport of chat does to an attempt, with vectors for its answer. */
function embeddingTransport(chat: ChatTransport): EmbeddingTransport {
  return {
    async embed({ source, count, context }) {
      const request = { messages: [] };
      const answer = await chat.complete({ source, request, messagesJson: "[]", stream: false, context });
      const { usage, modelReported, statusCode, latencyMs, limits } = answer;
      return { vectors: Array(count).fill([1]), dim: 1, usage, modelReported, statusCode, latencyMs, limits };
    },
    close: () => chat.close(),
  };
}

function embeddingClient({ transport, ...options }: GatewayOptions): OperationClient {
  const client = new EmbeddingClient({
    ...options,
    batchSize: 1,
    ...(transport === undefined ? {} : { transport: embeddingTransport(transport) }),
  });
  return {
    async call({ large, stream: _, ...wishes } = {}) {
      const { batches } = await client.embed([large === true ? WORDS : "hi"], wishes);
      return batches[0]!;
    },
    snapshot: () => client.snapshot(),
    close: () => client.close(),
  };
}

/** What a scripted transport of chat does to an attempt, with a page for its answer. */
function ocrTransport(chat: ChatTransport): OcrTransport {
  async function facts({ source, context }: OcrAttempt): Promise<OcrAnswerFacts> {
    const request = { messages: [] };
    const answer = await chat.complete({ source, request, messagesJson: "[]", stream: false, context });
    const { usage, modelReported, statusCode, latencyMs, limits } = answer;
    return { pageCount: 1, usage, modelReported, statusCode, latencyMs, limits };
  }
  return {
    recognizeText: async (attempt) => ({ text: "hi", ...(await facts(attempt)) }),
    parseLayout: async (attempt) => ({
      layout: { pages: [], elements: [], droppedElements: 0 },
      ...(await facts(attempt)),
    }),
    checkHealth: async () => ({ ok: true, latencyMs: 0, detail: "" }),
    close: () => chat.close(),
  };
}

/** Where a transport is scripted, tokens are counted as of a chat model; over HTTP the sources are servers without any. */
function ocrClient(
  { transport, sources, ...options }: GatewayOptions,
  ask: (client: OcrClient, image: Buffer, wishes: OcrCallOptions) => Promise<CallEnd>,
  server: OcrTransportName = "paddle",
): OperationClient {
  const client = new OcrClient({
    ...options,
    sources: sources.map((source) =>
      transport === undefined
        ? { ...source, transport: server }
        : { ...source, transport: "vlm", ocrReader: "dots-ocr" },
    ),
    ...(transport === undefined ? {} : { transport: ocrTransport(transport) }),
  });
  return {
    call: ({ large: _, stream: __, ...wishes } = {}) => ask(client, pngOf(100, 100), wishes),
    snapshot: () => client.snapshot(),
    close: () => client.close(),
  };
}

export const LOOP_OPERATIONS: readonly LoopOperation[] = [
  { kind: "chat", open: (options) => chatClient(options, (client, request) => client.chat(request)) },
  { kind: "chat_stream", open: (options) => chatClient(options, readStream) },
  { kind: "embedding", open: embeddingClient },
  ...ocrOperations(),
];

/** Reading over HTTP from a server of this kind. */
export function ocrOperations(server?: OcrTransportName): readonly LoopOperation[] {
  return [
    {
      kind: "ocr_text",
      open: (options) => ocrClient(options, (client, image, wishes) => client.recognizeText(image, wishes), server),
    },
    {
      kind: "ocr_layout",
      open: (options) => ocrClient(options, (client, image, wishes) => client.parseLayout(image, wishes), server),
    },
  ];
}

/** A stream is a chat call with a consumer, whose own table is test/loop/streams.test.ts. */
export const WHOLE_OPERATIONS = LOOP_OPERATIONS.filter(({ kind }) => kind !== "chat_stream");
