import { modelMatches } from "../../domain/model-pattern.js";
import type { ParameterNames } from "../../domain/profile.js";
import type { SourceConfig } from "../../domain/source.js";
import { SourceDeadError } from "../../errors.js";
import { isSafeHeader } from "../http.js";
import { createRedactor, type Redact } from "../redact.js";

/** What doesn't change between the attempts of one source: made once, kept as long as its configuration lives. */
export interface SourceWire {
  readonly origin: string;
  readonly path: string;
  readonly headers: string[];
  /** Every send carries the id of its attempt, so that a provider's log can be joined with the telemetry. */
  readonly sendsCallId: boolean;
  readonly redact: Redact;
  /** Fields of ours that this source has refused. */
  readonly dropped: Set<string>;
  /** Wire names of the parameters, by its profile and by what it has asked for. */
  names: ParameterNames;
  /** It answers nothing but streams. */
  mustStream: boolean;
  /** Names it has refused, so that two of them aren't tried in turns. */
  readonly givenUp: Set<string>;
}

/** What one kind of call asks for, and where. */
export interface WireTarget {
  /** What is appended to a source's base URL. */
  readonly pathOf: (source: SourceConfig) => string;
  /** The `accept` header. */
  readonly accept: string;
}

/** The name that OpenAI logs; others ignore it. */
const CALL_ID_HEADER = "x-client-request-id";

/** The headers of one send. */
export function headersOf({ headers, sendsCallId }: SourceWire, callId: string): string[] {
  return sendsCallId ? [...headers, CALL_ID_HEADER, callId] : headers;
}

function dead(source: SourceConfig, code: "auth" | "endpoint_not_found" | "config", what: string): SourceDeadError {
  const label = code === "auth" ? "credential rejected or unpaid" : "model or endpoint not found";
  return new SourceDeadError(`${source.name} ${label}: ${what}`, { code, sourceName: source.name });
}

/** Headers by lower-case name; the source's own win. Values are checked here and never quoted. */
function sourceHeaders(source: SourceConfig, accept: string): string[] {
  const key = source.apiKey.reveal();
  const byName = new Map<string, string>([
    ["accept", accept],
    ["accept-encoding", "identity"],
    ["content-type", "application/json"],
    ["user-agent", "polygateway"],
  ]);
  if (key !== "none") {
    const { header, scheme } = source.profile.auth;
    const value = scheme === "" ? key : `${scheme} ${key}`;
    if (!isSafeHeader(header, value)) {
      throw dead(
        source,
        "auth",
        "the API key holds a line break, control or non-latin character; set it again without it",
      );
    }
    byName.set(header.toLowerCase(), value);
  }
  for (const [name, value] of Object.entries(source.headers)) {
    if (!isSafeHeader(name, value)) {
      const shown = isSafeHeader(name, "") ? `header "${name}"` : "a header name";
      throw dead(source, "config", `${shown} holds a character that HTTP forbids; nothing was sent`);
    }
    byName.set(name.toLowerCase(), value);
  }
  return [...byName].flat();
}

function addressOf(source: SourceConfig): URL {
  if (!URL.canParse(source.baseUrl))
    throw dead(source, "endpoint_not_found", "BASE_URL is no valid URL; nothing was sent");
  const url = new URL(source.baseUrl);
  if (url.protocol === "http:" || url.protocol === "https:") return url;
  throw dead(source, "endpoint_not_found", "BASE_URL must begin with http:// or https://; nothing was sent");
}

function queryOf(source: SourceConfig, url: URL): string {
  const query = new URLSearchParams(url.search);
  for (const [name, value] of Object.entries(source.profile.query)) query.set(name, value);
  const text = query.toString();
  return text === "" ? "" : `?${text}`;
}

function namesOf({ profile, model }: SourceConfig): ParameterNames {
  const rules = profile.parameters.filter((rule) => rule.names !== undefined && modelMatches(rule.models, model));
  return Object.assign({}, profile.parameterNames, ...rules.map((rule) => rule.names)) as ParameterNames;
}

/** Throws SourceDeadError when the source's address or credentials can't be put on the wire. */
function prepare(source: SourceConfig, { pathOf, accept }: WireTarget, secrets: readonly string[]): SourceWire {
  const url = addressOf(source);
  return {
    origin: url.origin,
    path: `${url.pathname.replace(/\/+$/, "")}${pathOf(source)}${queryOf(source, url)}`,
    headers: sourceHeaders(source, accept),
    sendsCallId: !Object.keys(source.headers).some((name) => name.toLowerCase() === CALL_ID_HEADER),
    redact: createRedactor([source], secrets),
    dropped: new Set(),
    names: namesOf(source),
    mustStream: false,
    givenUp: new Set(),
  };
}

/** `secrets` = what else no text may show, as a proxy's password. */
export function createSourceWires(
  target: WireTarget,
  secrets: readonly string[] = [],
): (source: SourceConfig) => SourceWire {
  const wires = new WeakMap<SourceConfig, SourceWire>();
  return (source) => {
    let wire = wires.get(source);
    if (wire === undefined) {
      wire = prepare(source, target, secrets);
      wires.set(source, wire);
    }
    return wire;
  };
}
