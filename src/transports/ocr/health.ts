import type { OcrHealth } from "../../domain/ocr.js";
import type { SourceConfig } from "../../domain/source.js";
import { PolyGatewayError, SourceDeadError, TransientError } from "../../errors.js";
import type { AttemptContext, OcrHealthCheck } from "../../ports/transport.js";
import type { HttpClient } from "../http.js";
import { parseJson } from "../json-weight.js";
import { findEmbeddedFault } from "../openai/fault.js";
import type { SourceWire } from "../openai/source-wire.js";
import { ask } from "./ask.js";
import { embeddedRefusal } from "./json-answer.js";

/** Longest answer to such a look; lists of models are long. */
const MAX_HEALTH_BYTES = 8 * 1_024 * 1_024;

export interface HealthProbe {
  readonly http: HttpClient;
  readonly wireOf: (source: SourceConfig) => SourceWire;
  /** What is asked for, behind BASE_URL; for texts. */
  readonly path: string;
  /** What a good answer says, as half a sentence; undefined = it is no JSON. */
  describe(answer: unknown): string;
}

/** A look at a server by one cheap GET. Any answer but a refused key or a failure means that it is there. Never rejects. */
export async function probe({ http, wireOf, path, describe }: HealthProbe, check: OcrHealthCheck): Promise<OcrHealth> {
  const { source, runtime, timeoutMs } = check;
  const startedMs = runtime.now();
  const { context, release } = contextOf(check);
  try {
    const detail = await ask({
      http,
      source,
      context,
      operation: "health",
      wire: wireOf(source),
      method: "GET",
      body: null,
      maxBytes: MAX_HEALTH_BYTES,
      timeoutMs,
      read(answer, refused) {
        const parsed = parseJson(answer.text);
        const fault = findEmbeddedFault(parsed);
        if (fault !== undefined) throw refused(embeddedRefusal(answer, fault, runtime));
        return describe(parsed);
      },
    });
    return { ok: true, latencyMs: runtime.now() - startedMs, detail };
  } catch (error) {
    return { ...verdictOn(error, path), latencyMs: runtime.now() - startedMs };
  } finally {
    release();
  }
}

/** A path that a server hasn't got, or a limit that is reached: it is there all the same. */
function verdictOn(error: unknown, path: string): Omit<OcrHealth, "latencyMs"> {
  if (!PolyGatewayError.isInstance(error)) return { ok: false, detail: "the check was cancelled" };
  const { statusCode } = error;
  const isMissing = statusCode === 404 || statusCode === 405 || statusCode === 501;
  if (isMissing)
    return { ok: true, detail: `reachable; it has no GET ${path} (${statusCode}), so nothing more is known` };
  if (TransientError.isInstance(error) && error.rateLimited === true) {
    return { ok: true, detail: `reachable, but at its limit (${statusCode})` };
  }
  const isRefusal = statusCode !== undefined && statusCode >= 400 && !TransientError.isInstance(error);
  if (isRefusal && !SourceDeadError.isInstance(error)) {
    return { ok: true, detail: `reachable; it refuses GET ${path} (${statusCode}), so nothing more is known` };
  }
  return { ok: false, detail: error.message };
}

/** No attempt of a call: nothing is governed, booked or recorded. */
function contextOf({ runtime, signal }: OcrHealthCheck): { context: AttemptContext; release: () => void } {
  const id = runtime.uuid();
  let stop = (): void => {};
  const context: AttemptContext = {
    callId: id,
    requestId: id,
    operation: "health",
    runtime,
    get aborted() {
      return signal?.aborted === true;
    },
    get abortReason(): unknown {
      return signal?.reason;
    },
    onAbort(listener) {
      const tell = () => listener(signal?.reason);
      if (signal?.aborted) tell();
      signal?.addEventListener("abort", tell, { once: true });
      stop = () => signal?.removeEventListener("abort", tell);
      return stop;
    },
    markSent() {},
    markFirstToken() {},
    partialSoFar: null,
  };
  return { context, release: () => stop() };
}
