import { type Incapability, incapability, isParticular } from "../domain/capability.js";
import type { ScopeConfig } from "../domain/scope.js";
import type { SourceConfig } from "../domain/source.js";
import { mayHaveToStream } from "../domain/thinking.js";
import { RequestRejectedError, type SourceReasonDetail } from "../errors.js";
import type { Incapable } from "../governance/operation.js";
import type { CheckedRequest } from "./chat-request.js";
import { unknownModel } from "./unknown-model.js";

/** The sources a request may go to; one object per client and selection, so that its arrays keep their identity. */
export interface AbleSources {
  readonly sources: readonly SourceConfig[];
  readonly candidates: readonly string[];
  /** Some token gate is on, so that an estimate is needed at admission. */
  readonly countsTokens: boolean;
  readonly chargesMaximum: boolean;
  /** Some source answers certain calls with nothing but a stream. */
  readonly mayHaveToStream: boolean;
  /** Those of the model that were left out. */
  readonly incapable: Incapable | null;
}

interface Pool extends AbleSources {
  /** Some profile says something about parameters or thinking that any call can run against. */
  readonly particular: boolean;
  readonly textOnly: boolean;
}

/**
 * Who can do a call: the sources with its model, without those whose profile knows that they can't. Throws
 * RequestRejectedError for a model that no source has.
 */
export function createAbleSources(config: ScopeConfig): (request: CheckedRequest) => AbleSources {
  const pools = new Map<string | undefined, Pool>();
  const selections = new Map<string, AbleSources>();
  const describe = (sources: readonly SourceConfig[]) => ({
    sources,
    candidates: sources.map((source) => source.name),
    countsTokens: config.global.tpm > 0 || sources.some((source) => source.tpm > 0),
    chargesMaximum: sources.some((source) => source.tpmCharge === "max"),
    mayHaveToStream: sources.some(mayHaveToStream),
    incapable: null,
  });
  const pool = (sources: readonly SourceConfig[]): Pool => ({
    ...describe(sources),
    particular: sources.some(isParticular),
    textOnly: sources.some(({ profile }) => profile.modalities !== undefined),
  });
  pools.set(undefined, pool(config.sources));
  for (const { model } of config.sources) {
    if (!pools.has(model)) pools.set(model, pool(config.sources.filter((source) => source.model === model)));
  }

  /** Equal selections share their arrays: the queue knows equal calls by them. */
  function selected(sources: readonly SourceConfig[]): AbleSources {
    const key = sources.map(({ name }) => name).join("\n");
    let selection = selections.get(key);
    if (selection === undefined) {
      selection = describe(sources);
      selections.set(key, selection);
    }
    return selection;
  }

  return (request) => {
    const all = pools.get(request.model);
    if (all === undefined) throw unknownModel(config, request.model);
    const mayRefuse = request.thinking !== undefined || all.particular || (all.textOnly && request.hasParts);
    return mayRefuse ? narrowed(all, request, selected) : all;
  };
}

function narrowed(
  all: Pool,
  request: CheckedRequest,
  selected: (sources: readonly SourceConfig[]) => AbleSources,
): AbleSources {
  let left: [SourceConfig, Incapability][] | null = null;
  for (const source of all.sources) {
    const trouble = incapability(source, request);
    if (trouble === null) continue;
    left ??= [];
    left.push([source, trouble]);
  }
  if (left === null) return all;
  const able = all.sources.filter((source) => left.every(([other]) => other !== source));
  return { ...selected(able), incapable: incapableOf(left) };
}

/** The answer of a call for which sources were left out. */
export function incapableOf(left: readonly (readonly [SourceConfig, Incapability])[]): Incapable {
  const reasons: Record<string, SourceReasonDetail> = {};
  for (const [{ name }, { code, text }] of left) {
    reasons[name] = { reason: "incapable", waitMs: 0, lastError: { code, message: text } };
  }
  return {
    reasons,
    refusal: () => {
      const why = left.map(([{ name }, { text }]) => `${name}: ${text}`).join("; ");
      const [, { code, param }] = left[0]!;
      const all = left.length === 1 ? "the only source can't do this call" : "no source can do this call";
      return new RequestRejectedError(`${all} (${why}); nothing was sent`, { code, details: { param } });
    },
  };
}
