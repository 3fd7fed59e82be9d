import type { ChatCompletion } from "../../domain/chat.js";
import type { Runtime } from "../../ports/runtime.js";
import type { ChatAttempt, ChatTransport } from "../../ports/transport.js";
import { createHttpClient } from "../http.js";
import { type ProxyEnvironment, proxySecrets } from "../pool.js";
import { ChatExchange } from "./attempt.js";
import { buildWireBody } from "./request.js";
import { createSourceWires, type WireTarget } from "./source-wire.js";

export interface OpenAiChatTransportOptions {
  readonly runtime: Runtime;
  /** Proxy variables, read at the edge. Default: direct connections. */
  readonly proxyEnv?: ProxyEnvironment;
}

/**
 * Chat completions on the OpenAI-compatible wire (spec 03).
 *
 * With a sink, a stream's events are pushed as they come: deltas, then the whole `tool-call`s, `usage` when the
 * provider reported it, and `finish`. A field that the transport added and the source refuses is remembered for that
 * source and reported as RequestRejectedError `unsupported_param` with `details.droppedByUs`: the next attempt leaves it out.
 */
export function createOpenAiChatTransport(options: OpenAiChatTransportOptions): ChatTransport {
  const http = createHttpClient(options.proxyEnv);
  const target: WireTarget = {
    pathOf: ({ profile }) => profile.chatPath,
    accept: "text/event-stream, application/json",
  };
  const wireOf = createSourceWires(target, proxySecrets(options.proxyEnv ?? {}));
  return {
    complete(attempt: ChatAttempt): Promise<ChatCompletion> {
      const { context, source, request } = attempt;
      return new Promise((resolve, reject) => {
        if (context.aborted) {
          reject(context.abortReason);
          return;
        }
        const wire = wireOf(source);
        const sent = wire.mustStream && !attempt.stream ? { ...attempt, stream: true } : attempt;
        const body = buildWireBody(request, attempt.messagesJson, sent.stream, source, wire);
        new ChatExchange(sent, wire, body, resolve, reject).start(http);
      });
    },
    close: () => http.close(),
  };
}
