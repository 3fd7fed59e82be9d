import { RedisFailure } from "../backends/redis/failure.js";
import { isLastingFailure } from "../domain/lasting-failure.js";
import {
  ConfigError,
  GatewayUnavailableError,
  PolyGatewayError,
  RequestRejectedError,
  ResultInvalidError,
  type SourceReasonDetail,
  type UnavailableReason,
} from "../errors.js";
import { TelemetryFileError } from "../telemetry/store.js";
import { formatDuration } from "./format.js";
import { printable } from "./terminal.js";

/** Exit codes of every command; spec 08 gives them for `batch`. */
export const EXIT = {
  ok: 0,
  /** Wrong usage, wrong configuration, an unreadable file: nothing was done. */
  couldNotRun: 1,
  /** It ran, and something in it failed: lines of a batch, a refused prompt, books that don't balance. */
  someFailed: 2,
  /** No source could answer: the same command may work later. */
  gaveUp: 3,
  interrupted: 130,
} as const;

/** A failure of the command itself, told in full by its message. */
export class CliError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode: number = EXIT.couldNotRun) {
    super(message);
    this.name = "CliError";
    this.exitCode = exitCode;
  }
}

export interface Failure {
  readonly text: string;
  readonly exitCode: number;
}

const REASON_WORDS: Record<UnavailableReason, string> = {
  circuit_open: "Every source is being rested after failures.",
  no_sources: "No source is enabled for this call.",
  all_sources_dead: "No source is usable: each one refused its key, its model or its endpoint.",
  quota_exhausted: "The rate limits leave no room for this call now.",
  retry_exhausted: "Every try failed.",
  stalled: "Nothing moved for the whole stall window.",
  deadline_exceeded: "The deadline passed before an answer was complete.",
  governance_backend_down: "No call may start, since the limits can't be asked.",
};

/** What to do about sources that fail, and about sources that refuse for good. */
export const ASK_SOURCES = "`polygateway check --live` asks each source once and says what is wrong.";
export const ASK_LIMITS = "`polygateway check` reads the configuration, asks Redis how it is and says what is wrong.";
export const CORRECT_SOURCES = "Correct the keys, models or BASE_URLs; `polygateway check --live` tests each of them.";

const REASON_ADVICE: Record<UnavailableReason, string> = {
  circuit_open: `Try again later; ${ASK_SOURCES}`,
  no_sources: "Enable a source of the scope, or leave out --model; `polygateway check` lists sources and models.",
  all_sources_dead: CORRECT_SOURCES,
  quota_exhausted: "Try again later, or raise RPM, TPM or MAX_CONCURRENCY if the provider allows more.",
  retry_exhausted: `Try again later; ${ASK_SOURCES}`,
  stalled: `Try again later; ${ASK_SOURCES}`,
  deadline_exceeded: "Raise the scope's DEADLINE_S, or ask for a shorter answer.",
  governance_backend_down: "`polygateway check` asks Redis how it is. Then repeat the command.",
};

function describeSource(name: string, detail: SourceReasonDetail): string {
  const wait = detail.waitMs > 0 ? `, next try in ${formatDuration(detail.waitMs)}` : "";
  const last = detail.lastError ? `: ${detail.lastError.message}` : "";
  return `  ${name}: ${detail.reason.replaceAll("_", " ")}${wait}${last}`;
}

/** Redis that is away has to be started; one that answers says itself what has to be done. */
function adviceOn({ cause, reason }: GatewayUnavailableError): string {
  if (!(cause instanceof RedisFailure)) return REASON_ADVICE[reason] ?? "Try again later.";
  return cause.wasAnswered
    ? "Mend that, then repeat the command; `polygateway check` says whether it is mended."
    : "Start it, or correct its address (REDIS_URL); `polygateway check` asks it. Then repeat the command.";
}

function describeUnavailable(error: GatewayUnavailableError): Failure {
  const advice = adviceOn(error);
  const lines = [REASON_WORDS[error.reason] ?? error.message];
  const sources = Object.entries(error.perSourceReasons);
  if (error.cause instanceof RedisFailure) lines.push(`  ${error.message}`);
  else if (error.cause instanceof Error) lines.push(`  ${error.cause.message}`);
  else if (sources.length === 0) lines.push(`  ${error.message}`);
  lines.push(...sources.map(([name, detail]) => describeSource(name, detail)));
  lines.push(advice);
  if (isLastingFailure(error)) return { text: lines.join("\n"), exitCode: EXIT.couldNotRun };
  if (error.retryAfterMs > 0) lines.push(`A new try makes sense in ${formatDuration(error.retryAfterMs)}.`);
  return { text: lines.join("\n"), exitCode: EXIT.gaveUp };
}

function rejectionAdvice(error: RequestRejectedError): string {
  if (error.code === "context_length") return "Shorten the prompt, or use a source whose model takes more.";
  if (error.code === "content_filtered") return "The provider's content rules refused it; word it differently.";
  return "The same request would be refused again: change it as the message says.";
}

const FILE_PROBLEMS: Record<string, string> = {
  ENOENT: "no such file or folder",
  EACCES: "permission denied",
  EPERM: "not permitted",
  EISDIR: "it is a folder",
  ENOTDIR: "a part of the path is not a folder",
  ENOSPC: "the disk is full",
  EROFS: "the file system is read-only",
  EADDRINUSE: "the address is already in use",
};

function describeSystemError(error: NodeJS.ErrnoException): string | undefined {
  const problem = FILE_PROBLEMS[error.code ?? ""];
  if (problem === undefined) return undefined;
  return `${error.path ?? error.syscall ?? "The system"}: ${problem}.`;
}

/** What happened, to what, and what to do next; never a stack trace. */
export function describeFailure(error: unknown): Failure {
  const failure = plainFailure(error);
  return { ...failure, text: printable(failure.text) };
}

function plainFailure(error: unknown): Failure {
  if (error instanceof CliError) return { text: error.message, exitCode: error.exitCode };
  if (error instanceof ConfigError) {
    return {
      text: `${error.message}\nCorrect them, then run \`polygateway check\`.`,
      exitCode: EXIT.couldNotRun,
    };
  }
  if (error instanceof GatewayUnavailableError) return describeUnavailable(error);
  if (error instanceof RequestRejectedError) {
    return { text: `${error.message}\n${rejectionAdvice(error)}`, exitCode: EXIT.someFailed };
  }
  if (error instanceof ResultInvalidError) {
    return {
      text: `The answer can't be used: ${error.message}\nTry again, or another model.`,
      exitCode: EXIT.someFailed,
    };
  }
  if (error instanceof PolyGatewayError || error instanceof TelemetryFileError)
    return { text: error.message, exitCode: EXIT.couldNotRun };
  if (error instanceof Error) {
    const known = describeSystemError(error);
    if (known !== undefined) return { text: known, exitCode: EXIT.couldNotRun };
  }
  const message = error instanceof Error ? error.message : String(error);
  return {
    text: `Unexpected error: ${message}\nSet PGW_DEBUG=1 to see where it happened, and please report it.`,
    exitCode: EXIT.couldNotRun,
  };
}
