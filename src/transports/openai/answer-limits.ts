/**
 * How large one chat answer may become (docs/guide/hostile-providers.md). What goes beyond is `malformed`; each limit lies
 * far above what any model answers.
 */

/** Decoded bytes of one answer, and the weight of its text: one per UTF-16 unit, and what is added below for small pieces. */
export const MAX_ANSWER_BYTES = 16 * 1_024 * 1_024;
/** A delta weighs this much more than its text: a million tokens of one letter each are still an answer. */
export const DELTA_WEIGHT = 12;
/** The same for a delta that a consumer gets as an event of its own. */
export const EVENT_WEIGHT = 96;
/** Over all choices. */
export const MAX_TOOL_CALLS = 4_096;
export const MAX_CHOICES = 1_024;
