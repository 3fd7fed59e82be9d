import type { SourceRecord } from "../../../domain/scope-state.js";
import { type Packed, packedList } from "./layout.js";
import { addLearned, addTrouble, judgedValues, learnedValues, troubleValues } from "./source-layout.js";

/**
 * What of a source is still packed; null = it is in its record, and may have changed. It is what Lua asks about a field that
 * a record has not: a part is unpacked where a rule reads or sets the first of its fields. Most ticks judge many sources and
 * let one or two be used.
 */
export interface LaterParts {
  readonly __index: (this: void, record: object, field: string) => unknown;
  readonly __newindex: (this: void, record: object, field: string, value: unknown) => void;
  readonly source: SourceRecord;
  learned: string | null;
  trouble: string | null;
}

export function laterParts(source: SourceRecord, learned: string, trouble: string): LaterParts {
  const parts: LaterParts = { __index: readLater, __newindex: setLater, source, learned, trouble };
  askFrom(source, parts);
  return parts;
}

function askFrom({ breaker, pacer, gradient, evidence }: SourceRecord, parts: LaterParts | undefined): void {
  setmetatable(breaker, parts);
  setmetatable(pacer, parts);
  setmetatable(pacer.goodput, parts);
  setmetatable(gradient, parts);
  setmetatable(evidence, parts);
}

function readLater(record: object, field: string): unknown {
  unpackFor(record as Record<string, unknown>, field);
  return (record as Record<string, unknown>)[field];
}

function setLater(record: object, field: string, value: unknown): void {
  unpackFor(record as Record<string, unknown>, field);
  (record as Record<string, unknown>)[field] = value;
}

function unpackFor(record: Record<string, unknown>, field: string): void {
  const parts = getmetatable(record) as LaterParts;
  const { source, learned, trouble } = parts;
  askFrom(source, undefined);
  if (learned !== null) {
    addLearned(source, cmsgpack.unpack(learned) as Packed);
    parts.learned = null;
    if (record[field] !== undefined) {
      if (trouble !== null) askFrom(source, parts);
      return;
    }
  }
  if (trouble === null) return;
  addTrouble(source, cmsgpack.unpack(trouble) as Packed);
  parts.trouble = null;
}

export function packedSource(source: SourceRecord, parts: LaterParts | undefined): string {
  const learned = parts?.learned ?? cmsgpack.pack(learnedValues(source));
  const trouble = parts?.trouble ?? cmsgpack.pack(troubleValues(source));
  return packedList(judgedValues(source, learned, trouble));
}
