import type { ToolCall } from "../../domain/chat.js";
import { parseJson } from "../json-weight.js";
import { flattened } from "../text-pile.js";
import { ValueScan } from "./value-scan.js";

/** Collects tool calls from whole messages and from deltas: keyed by index, then id, then order (spec 03 "Tool calls"). */

type Fields = Record<string, unknown>;

export interface CollectedCall {
  readonly position: number;
  readonly index: number | undefined;
  id: string;
  name: string;
  args: string;
  /** An event already told the consumer this id, so it stays. */
  announced: boolean;
  /** Reads along once somebody asked whether the arguments are whole. */
  scan: ValueScan | undefined;
}

/** What one delta added. */
export interface CallDelta {
  readonly call: CollectedCall;
  readonly argumentsDelta: string;
}

function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null ? (value as Fields) : {};
}

/** Blank ids and names are absent ones; numbers are coerced. */
function word(value: unknown): string {
  if (typeof value === "number") return String(value);
  return typeof value === "string" && value.trim() !== "" ? value : "";
}

function isWholeJson(text: string): boolean {
  return parseJson(text) !== undefined;
}

/** As canonical text; undefined for what is nested too deeply to be written. */
function written(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}

/** End of the first balanced JSON object or array of `text`; -1 when it has none. */
function endOfFirstValue(text: string): number {
  let depth = 0;
  let inString = false;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (inString) {
      if (character === "\\") at += 1;
      else if (character === '"') inString = false;
    } else if (character === '"') inString = true;
    else if (character === "{" || character === "[") depth += 1;
    else if (character === "}" || character === "]") {
      depth -= 1;
      if (depth === 0) return at + 1;
    }
  }
  return -1;
}

/** A JSON string that holds the JSON of the arguments. */
function unwrapped(value: unknown): string | undefined {
  if (typeof value !== "string") return undefined;
  const inner = parseJson(value);
  return typeof inner === "object" && inner !== null ? value : undefined;
}

/** `{…}` followed by the same again, plain or double-encoded; or an empty placeholder followed by the real arguments. */
function withoutEcho(text: string): string | undefined {
  const end = endOfFirstValue(text);
  if (end === -1) return undefined;
  const first = text.slice(0, end);
  const rest = text.slice(end).trim();
  const value = parseJson(first);
  const echo = parseJson(rest);
  if (value === undefined || echo === undefined) return undefined;
  const second = unwrapped(echo) ?? rest;
  if (first.trim() === "{}") return second;
  const canonical = written(value);
  return canonical !== undefined && canonical === written(parseJson(second)) ? first : undefined;
}

/** Arguments as one JSON text. What can't be read stays as it came: nothing is ever repaired into a runnable call. */
export function normaliseArguments(text: string): string {
  if (text.trim() === "") return "{}";
  const value = parseJson(text);
  if (value === null) return "{}";
  if (value !== undefined) return unwrapped(value) ?? text;
  return withoutEcho(text) ?? text;
}

export class ToolCallCollector {
  readonly #calls: CollectedCall[] = [];
  /** The last call of an index, and of an id. */
  readonly #byIndex = new Map<number, CollectedCall>();
  readonly #byId = new Map<string, CollectedCall>();
  readonly #idPrefix: string;

  /** Ids that the provider left out are invented from `idPrefix`: stable, and unique in the answer. */
  constructor(idPrefix: string) {
    this.#idPrefix = idPrefix;
  }

  get size(): number {
    return this.#calls.length;
  }

  /** One element of `delta.tool_calls`. */
  addDelta(raw: unknown): CallDelta {
    const fields = fieldsOf(raw);
    const call = this.#find(fields) ?? this.#open(indexOf(fields.index));
    return { call, argumentsDelta: this.#merge(call, fields) };
  }

  /** One element of `message.tool_calls`: always a call of its own. */
  addWhole(raw: unknown): CallDelta {
    const fields = fieldsOf(raw);
    const call = this.#open(undefined);
    return { call, argumentsDelta: this.#merge(call, fields) };
  }

  idOf(call: CollectedCall): string {
    return call.id === "" ? `${this.#idPrefix}${call.position}` : call.id;
  }

  /** Makes one block of each text that came in many pieces. */
  compact(): void {
    for (const call of this.#calls) call.args = flattened(call.args);
  }

  /** The calls so far; `onlyWhole` leaves out those whose arguments are no JSON yet. */
  calls(onlyWhole = false): ToolCall[] {
    const whole: ToolCall[] = [];
    const ids = new Set<string>();
    for (const call of this.#calls) {
      const args = normaliseArguments(call.args);
      if (call.name === "" && args === "{}") continue;
      if (onlyWhole && (call.name === "" || !isWholeJson(args))) continue;
      const id = this.idOf(call);
      const unique = ids.has(id) ? `${id}_${call.position}` : id;
      ids.add(unique);
      whole.push({ id: unique, name: call.name, arguments: args });
    }
    return whole;
  }

  /** Is there a call whose arguments stop in the middle? */
  hasCut(): boolean {
    return this.#calls.some((call) => !isWholeJson(normaliseArguments(call.args)));
  }

  #find(fields: Fields): CollectedCall | undefined {
    const id = word(fields.id);
    const name = word(fieldsOf(fields.function).name);
    const index = indexOf(fields.index);
    const known = index === undefined ? this.#findUnindexed(id) : this.#byIndex.get(index);
    if (known === undefined) return undefined;
    // A server that numbers every call 0 tells them apart by id; a changing id without a name is noise.
    if (id !== "" && known.id !== "" && id !== known.id && name !== "") return undefined;
    const mayBeAnother = index === undefined && (id === "" || known.id === "") && name !== "" && known.name !== "";
    if (mayBeAnother && (name !== known.name || hasWholeArguments(known))) return undefined;
    return known;
  }

  #findUnindexed(id: string): CollectedCall | undefined {
    if (id === "") return this.#calls.at(-1);
    const byId = this.#byId.get(id);
    const last = this.#calls.at(-1);
    return byId ?? (last !== undefined && last.id === "" ? last : undefined);
  }

  #open(index: number | undefined): CollectedCall {
    const call: CollectedCall = {
      position: this.#calls.length,
      index,
      id: "",
      name: "",
      args: "",
      announced: false,
      scan: undefined,
    };
    this.#calls.push(call);
    if (index !== undefined) this.#byIndex.set(index, call);
    return call;
  }

  #merge(call: CollectedCall, fields: Fields): string {
    const body = fieldsOf(fields.function);
    if (call.id === "" && !call.announced) this.#name(call, word(fields.id));
    if (call.name === "") call.name = word(body.name);
    const args = body.arguments;
    if (typeof args === "string") {
      call.args += args;
      call.scan?.feed(args);
      return args;
    }
    if (typeof args !== "object" || args === null) return "";
    const text = JSON.stringify(args);
    if (call.args === text) return "";
    const delta = call.args === "" ? text : "";
    call.args = text;
    call.scan = undefined;
    return delta;
  }

  #name(call: CollectedCall, id: string): void {
    call.id = id;
    if (id !== "" && (this.#byId.get(id)?.position ?? -1) < call.position) this.#byId.set(id, call);
  }
}

/** Asked with every delta of a server that numbers nothing: the pieces are read once each, never the whole again. */
function hasWholeArguments(call: CollectedCall): boolean {
  call.scan ??= ValueScan.of(call.args);
  return call.scan.isWhole(call.args);
}

function indexOf(value: unknown): number | undefined {
  const index = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
  return typeof index === "number" && Number.isInteger(index) ? index : undefined;
}
