import type { Packed } from "../../src/backends/redis/script/layout.js";
import {
  addLearned,
  addTrouble,
  judgedSource,
  judgedValues,
  LEARNED_AT,
  learnedValues,
  TROUBLE_AT,
  troubleValues,
} from "../../src/backends/redis/script/source-layout.js";
import type { SourceRecord } from "../../src/domain/scope-state.js";

/** All that the script keeps of a source, its parts as lists where the script has them packed. */
export function allValues(source: SourceRecord): Packed {
  const values: Packed = judgedValues(source, "", "");
  values[LEARNED_AT] = learnedValues(source);
  values[TROUBLE_AT] = troubleValues(source);
  return values;
}

export function wholeSource(values: Packed): SourceRecord {
  const source = judgedSource(...(values.slice(TROUBLE_AT + 1) as Parameters<typeof judgedSource>));
  addLearned(source, values[LEARNED_AT]);
  addTrouble(source, values[TROUBLE_AT]);
  return source;
}
