import { createSystemRuntime } from "../backends/system.js";
import type { ChatCompletion, ChatRequest } from "../domain/chat.js";
import { OPENAI_PROFILE } from "../domain/profile.js";
import { Secret } from "../domain/secret.js";
import type { SourceConfig } from "../domain/source.js";
import type { PartialReply } from "../errors.js";
import type { Runtime } from "../ports/runtime.js";
import type { AttemptContext, ChatAttempt, ChatSink, ChatTransport } from "../ports/transport.js";

export const runtime: Runtime = createSystemRuntime({ log: () => {} });

export function testSource(baseUrl: string, overrides: Partial<SourceConfig> = {}): SourceConfig {
  return {
    name: "src_1",
    provider: "test",
    baseUrl,
    apiKey: new Secret("sk-test-key-0001"),
    model: "m-test",
    profile: OPENAI_PROFILE,
    transport: "openai",
    ocrReader: "auto",
    ocrPrompt: undefined,
    ocrLayoutPrompt: undefined,
    timeoutMs: 20_000,
    ttftTimeoutMs: 10_000,
    interTokenTimeoutMs: 5_000,
    estTokens: undefined,
    tpmCharge: "actual",
    contextTokens: undefined,
    stream: true,
    requireDone: false,
    transient400: "off",
    thinking: undefined,
    extraBody: {},
    headers: {},
    weight: 1,
    priority: 0,
    maxConcurrency: 0,
    rpm: 0,
    tpm: 0,
    limitRule: "smooth",
    strict: true,
    burstS: 0,
    burstTokensS: 0,
    ...overrides,
  };
}

/** An attempt's context that a test can abort, and that counts what the transport does with it. */
export class TestContext implements AttemptContext {
  readonly callId = "c-1";
  readonly requestId = "r-1";
  readonly operation = "chat";
  readonly runtime: Runtime;
  aborted = false;
  abortReason: unknown;
  partialSoFar: (() => PartialReply) | null = null;
  sent = 0;
  firstTokens = 0;
  readonly listeners = new Set<(reason: unknown) => void>();

  constructor(ownRuntime: Runtime = runtime) {
    this.runtime = ownRuntime;
  }

  onAbort(listener: (reason: unknown) => void): () => void {
    if (this.aborted) listener(this.abortReason);
    else this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  markSent(): void {
    this.sent += 1;
  }

  markFirstToken(): void {
    this.firstTokens += 1;
  }

  abort(reason: unknown): void {
    this.aborted = true;
    this.abortReason = reason;
    for (const listener of [...this.listeners]) listener(reason);
    this.listeners.clear();
  }
}

export interface SendOptions {
  readonly request?: Partial<ChatRequest>;
  readonly stream?: boolean;
  readonly sink?: ChatSink;
  readonly context?: TestContext;
}

export function testAttempt(source: SourceConfig, options: SendOptions = {}): ChatAttempt {
  const request: ChatRequest = { messages: [{ role: "user", content: "hi" }], ...options.request };
  return {
    source,
    request,
    messagesJson: JSON.stringify(request.messages),
    stream: options.stream ?? true,
    ...(options.sink === undefined ? {} : { sink: options.sink }),
    context: options.context ?? new TestContext(),
  };
}

export type Outcome = { readonly ok: ChatCompletion } | { readonly error: unknown };

export function send(transport: ChatTransport, source: SourceConfig, options: SendOptions = {}): Promise<Outcome> {
  return transport.complete(testAttempt(source, options)).then(
    (ok) => ({ ok }),
    (error: unknown) => ({ error }),
  );
}
