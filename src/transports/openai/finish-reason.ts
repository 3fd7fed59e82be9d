import type { FinishReason } from "../../domain/chat.js";
import type { ErrorCode } from "../../errors.js";

const NORMALISED: Readonly<Record<string, Exclude<FinishReason, null>>> = {
  stop: "stop",
  eos: "stop",
  eos_token: "stop",
  end_turn: "stop",
  stop_sequence: "stop",
  length: "length",
  max_tokens: "length",
  max_output_tokens: "length",
  model_length: "length",
  model_context_window_exceeded: "length",
  tool_calls: "tool_calls",
  tool_use: "tool_calls",
  function_call: "tool_calls",
  content_filter: "content_filter",
  sensitive: "content_filter",
  safety: "content_filter",
};

/** Failures dressed as an end (spec 03 "Stream"). */
const FAILURES: Readonly<Record<string, ErrorCode>> = {
  error: "upstream_error",
  abort: "upstream_error",
  aborted: "upstream_error",
  network_error: "network",
  insufficient_system_resource: "overloaded",
};

function own<T>(table: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(table, key) ? table[key] : undefined;
}

/** The raw reason, or null while the choice is running: null, "" and "null" all mean "not finished". */
export function rawFinishReason(value: unknown): string | null {
  return typeof value === "string" && value !== "" && value !== "null" ? value : null;
}

export function normaliseFinishReason(raw: string | null): FinishReason {
  return raw === null ? null : (own(NORMALISED, raw) ?? own(NORMALISED, raw.toLowerCase()) ?? "unknown");
}

/** The code of the failure that this reason stands for; undefined for a real end. */
export function finishFailure(raw: string | null): ErrorCode | undefined {
  return raw === null ? undefined : own(FAILURES, raw.toLowerCase());
}
