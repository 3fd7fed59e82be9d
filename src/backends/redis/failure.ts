import { GovernanceBackendError } from "../../errors.js";

/**
 * Why Redis gave no answer.
 *
 * unreachable: no connection, nothing was sent · timeout: no answer in time · cut: the connection broke before the answer ·
 * noscript: the script is not loaded · readonly: a replica · loading: it still reads its data · busy: a script blocks it ·
 * oom: maxmemory is reached and nothing may be evicted · misconf, noreplicas: it refuses writes as configured ·
 * auth: no, wrong or insufficient credentials · clusterdown: a part of the cluster is missing · moved: this is a node of a
 * cluster, and the client doesn't know · crossslot: keys of different slots · wrongtype: a key holds something foreign ·
 * script: any other error inside a script · other: anything else.
 */
export type RedisFailureKind =
  | "unreachable"
  | "timeout"
  | "cut"
  | "noscript"
  | "readonly"
  | "loading"
  | "busy"
  | "oom"
  | "misconf"
  | "noreplicas"
  | "auth"
  | "clusterdown"
  | "moved"
  | "crossslot"
  | "wrongtype"
  | "script"
  | "other";

/** Where nothing says whether the server did what it was asked. */
const IN_DOUBT: ReadonlySet<RedisFailureKind> = new Set(["timeout", "cut"]);

/** A failed command. It holds no error of the client: those carry the command's arguments, a password among them. */
export class RedisFailure extends Error {
  readonly kind: RedisFailureKind;
  /** Redis' own code (`OOM`, `READONLY`, `NOAUTH`, …); undefined when it is not Redis that speaks. */
  readonly redisCode: string | undefined;

  constructor(kind: RedisFailureKind, message: string, redisCode?: string) {
    super(message);
    this.name = "RedisFailure";
    this.kind = kind;
    this.redisCode = redisCode;
  }

  /** The server may have done it all the same, or will do it when it wakes up: what was taken must be given back by its id. */
  get mayHaveRun(): boolean {
    return IN_DOUBT.has(this.kind);
  }
}

const KINDS: Readonly<Record<string, RedisFailureKind>> = {
  NOSCRIPT: "noscript",
  READONLY: "readonly",
  LOADING: "loading",
  BUSY: "busy",
  OOM: "oom",
  MISCONF: "misconf",
  NOREPLICAS: "noreplicas",
  NOAUTH: "auth",
  WRONGPASS: "auth",
  NOPERM: "auth",
  CLUSTERDOWN: "clusterdown",
  TRYAGAIN: "clusterdown",
  MASTERDOWN: "clusterdown",
  MOVED: "moved",
  ASK: "moved",
  CROSSSLOT: "crossslot",
  WRONGTYPE: "wrongtype",
};

/** What to do about it, where a person can do something. */
const REMEDIES: Partial<Record<RedisFailureKind, string>> = {
  readonly: "the address names a read-only replica; give the primary, or Sentinel",
  oom: "Redis has reached maxmemory; give it more, or remove what else is in it",
  auth: "check user, password and rights of REDIS_URL",
  moved: "this is a node of a Redis Cluster; give the nodes as `cluster`",
  misconf: "Redis can't save to its disk and refuses writes (see its log)",
  noreplicas: "Redis refuses writes without replicas (min-replicas-to-write)",
};

/** Redis 6 and older put an error inside a script behind words of their own. */
const WRAPPED = /^ERR Error running script .*?@user_script: ?\d+: (?:@user_script: ?\d+: )?-?/s;
const CODE = /^-?([A-Z][A-Z0-9]+) /;
const IN_SCRIPT = /user_script|Error (?:running|compiling) script/;
/** As long as a diagnosis needs. */
const LONGEST_TEXT = 300;

export type CleanText = (text: string) => string;

/** What an error of the client means. `clean` takes secrets out of texts. */
export function classifyRedisError(error: unknown, clean: CleanText = (text) => text): RedisFailure {
  if (error instanceof RedisFailure) return error;
  const { name, message = String(error), code } = (error ?? {}) as { name?: string; message?: string; code?: unknown };
  if (name === "ReplyError") return replyFailure(clean(message).slice(0, LONGEST_TEXT));
  const kind = clientKind(name, message, code);
  return new RedisFailure(kind, withRemedy(kind, clean(message).slice(0, LONGEST_TEXT)));
}

function replyFailure(message: string): RedisFailure {
  const redisCode = CODE.exec(message.replace(WRAPPED, ""))?.[1];
  const known = redisCode === undefined ? undefined : KINDS[redisCode];
  const kind = known ?? (isAuth(message) ? "auth" : IN_SCRIPT.test(message) ? "script" : "other");
  return new RedisFailure(kind, withRemedy(kind, message), redisCode);
}

/** Before Redis 6 these had no code of their own. */
function isAuth(message: string): boolean {
  return /invalid (?:username-)?password|AUTH <password> called without/i.test(message);
}

/** The client's own errors have no codes: these are the words of ioredis 5 and 6. */
function clientKind(name: string | undefined, message: string, code: unknown): RedisFailureKind {
  if (/timed out/i.test(message) && !/connect/i.test(message)) return "timeout";
  if (name === "MaxRetriesPerRequestError" || name === "AbortError") return "cut";
  if (/Connection is closed|Socket timeout/i.test(message) || code === "EPIPE" || code === "ECONNRESET") return "cut";
  if (/Too many Cluster redirections/i.test(message)) return "clusterdown";
  return typeof code === "string" || /writeable|ready|available|refresh slots|connect/i.test(message)
    ? "unreachable"
    : "other";
}

function withRemedy(kind: RedisFailureKind, message: string): string {
  const remedy = REMEDIES[kind];
  return remedy === undefined ? message : `${message} (${remedy})`;
}

/** A failure as the governor's callers get it. */
export function governanceError(scope: string, step: string, failure: RedisFailure): GovernanceBackendError {
  return new GovernanceBackendError(`Redis ${step} failed: ${failure.message}`, { scope, cause: failure });
}
