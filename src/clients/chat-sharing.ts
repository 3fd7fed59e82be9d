import { isShareable } from "../domain/cache-key.js";
import type { ChatCompletion, ChatResponse } from "../domain/chat.js";
import type { SourceConfig } from "../domain/source.js";
import type { GovernEnvironment } from "../governance/call.js";
import type { HitFacts } from "../governance/hit.js";
import type { Operation } from "../governance/operation.js";
import { type Joined, SharedCalls } from "../governance/shared-calls.js";
import { type ChatCacheOptions, keyOfCall } from "./chat-cache.js";
import type { CheckedRequest } from "./chat-request.js";

/** Identical plain calls in flight as one (spec 04); null where it is off. */
export interface ChatSharing {
  /** What this call shares with others; null = it is asked on its own. `cached` = its key in the cache, where it has one. */
  keyOf(request: CheckedRequest, sources: readonly SourceConfig[], cached: string | null): string | null;
  run(
    key: string,
    operation: Operation<null, ChatCompletion>,
    request: CheckedRequest,
  ): Promise<Joined<ChatCompletion>>;
}

export function createChatSharing(environment: GovernEnvironment, tenant: ChatCacheOptions): ChatSharing {
  const calls = new SharedCalls<ChatCompletion>(environment);
  return {
    keyOf(request, sources, cached) {
      const { cache, failover } = request;
      if (cache === "bypass" || sources.length === 0 || !isShareable(request, sources)) return null;
      const key = cached ?? keyOfCall(request, sources, tenant);
      return key === null ? null : `${key} ${cache ?? "use"} ${failover ?? ""}`;
    },
    run: (key, operation, request) => calls.run(key, operation, request),
  };
}

/** The answer as one of several calls is told it: a copy, since nobody may change what others are given. */
export function sharedResponse(response: ChatResponse, hit: HitFacts | null): ChatResponse {
  const copy = structuredClone(response);
  if (hit === null) return copy;
  const { callId, requestId, latencyMs } = hit;
  return { ...copy, callId, requestId, latencyMs, ttftMs: null, attempts: 0, cacheHit: true, cost: 0 };
}
