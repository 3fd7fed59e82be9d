import { GovernanceBackendError, RequestRejectedError } from "../../errors.js";

/**
 * Why Redis gave no answer.
 *
 * unreachable: no connection, nothing was sent · timeout: no answer in time · cut: the connection broke before the answer ·
 * noscript: the script is not loaded · readonly: a replica · loading: it still reads its data · busy: a script blocks it ·
 * oom: maxmemory is reached and nothing may be evicted · misconf, noreplicas: it refuses writes as configured ·
 * auth: no or wrong credentials · noperm: they don't allow it · clusterdown: a part of the cluster is missing · moved: this
 * is a node of a cluster, and the client doesn't know · crossslot: keys of different slots · nodatabase: no database of that
 * number · foreign: no Redis answers there · wrongtype: a key holds something foreign · script: any other error inside a
 * script · other: anything else.
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
  | "noperm"
  | "clusterdown"
  | "moved"
  | "crossslot"
  | "nodatabase"
  | "foreign"
  | "wrongtype"
  | "script"
  | "other";

/** Where nothing says whether the server did what it was asked. */
const IN_DOUBT: ReadonlySet<RedisFailureKind> = new Set(["timeout", "cut"]);

/** Where nobody has answered anything. */
const NO_ANSWER: ReadonlySet<RedisFailureKind> = new Set(["unreachable", "timeout", "cut"]);

/** What no waiting mends: a person has to change the address, the password or the rights. */
const LASTING: ReadonlySet<RedisFailureKind> = new Set([
  "auth",
  "noperm",
  "moved",
  "crossslot",
  "nodatabase",
  "foreign",
]);

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

  /** It would be the same later. */
  get isLasting(): boolean {
    return LASTING.has(this.kind);
  }

  /** Redis, or whoever listens there, has spoken: starting it is no remedy. */
  get wasAnswered(): boolean {
    return !NO_ANSWER.has(this.kind);
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
  NOPERM: "noperm",
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
  readonly: "the address names a read-only replica: give the primary's, or Sentinel",
  oom: "Redis has reached its maxmemory: raise it, or remove what else is kept there",
  auth: "correct the user and password in the address of Redis",
  noperm: "the Redis user lacks a right: allow it all commands on the keys and channels pgw:*",
  moved: "this is a node of a Redis Cluster: give the nodes as `cluster`",
  nodatabase: "give a database number that this Redis has",
  misconf: "Redis can't save to its disk and refuses writes: see its log",
  noreplicas: "Redis refuses writes without replicas: connect one, or lower min-replicas-to-write",
  loading: "Redis still loads its data: wait until it has",
  busy: "a script of somebody else keeps Redis busy: SCRIPT KILL ends it",
  clusterdown: "a part of the cluster is missing: see CLUSTER INFO",
};

const FOREIGN =
  "what answers there speaks another protocol (correct host and port; rediss:// is for TLS, redis:// for none)";

/** Redis 6 and older put an error inside a script behind words of their own. */
const WRAPPED = /^ERR Error running script .*?@user_script: ?\d+: (?:@user_script: ?\d+: )?-?/s;
/** Redis 7 puts the script's name after it. */
const SCRIPT_NAME = /\.? script: [0-9a-f]+, on @user_script:\d+\.?$/;
const SCRIPT_LINE = /^(?:ERR )?user_script:(\d+): (.*)$/s;
const CODE = /^-?([A-Z][A-Z0-9]+) /;
const IN_SCRIPT = /user_script|Error (?:running|compiling) script/;
/** Before Redis 6 these had no code of their own. */
const IS_AUTH = /invalid (?:username-)?password|AUTH <password> called without/i;
/** In a script the missing right has no code. */
const IS_NOPERM = /The user executing the script can't/;
const IS_NO_DATABASE = /DB index is out of range|invalid DB index/i;
/** As long as a diagnosis needs. */
const LONGEST_TEXT = 300;

export type CleanText = (text: string) => string;

/** What an error of the client means. `clean` takes secrets out of texts. */
export function classifyRedisError(error: unknown, clean: CleanText = (text) => text): RedisFailure {
  if (error instanceof RedisFailure) return error;
  const { name, message = String(error), code } = (error ?? {}) as { name?: string; message?: string; code?: unknown };
  if (name === "ReplyError") return replyFailure(clean(message).slice(0, LONGEST_TEXT));
  const kind = clientKind(name, message, code);
  // Which byte the client stumbled over tells people nothing.
  if (kind === "foreign") return new RedisFailure(kind, FOREIGN);
  return new RedisFailure(kind, withRemedy(kind, inOurWords(clean(message)).slice(0, LONGEST_TEXT)));
}

function replyFailure(said: string): RedisFailure {
  const message = withoutScript(said);
  const redisCode = CODE.exec(message)?.[1];
  const known = redisCode === undefined ? undefined : KINDS[redisCode];
  const kind = known ?? unnamedKind(message, IN_SCRIPT.test(said));
  return new RedisFailure(kind, withRemedy(kind, message), redisCode);
}

function unnamedKind(message: string, inScript: boolean): RedisFailureKind {
  if (IS_AUTH.test(message)) return "auth";
  if (IS_NOPERM.test(message)) return "noperm";
  if (IS_NO_DATABASE.test(message)) return "nodatabase";
  return inScript ? "script" : "other";
}

/** What Redis says, without the name of a script that means nothing to people. */
function withoutScript(message: string): string {
  const bare = message.replace(SCRIPT_NAME, "");
  const [, line, fault] = SCRIPT_LINE.exec(bare) ?? [];
  return fault === undefined ? bare.replace(WRAPPED, "") : `${fault} (line ${line} of the script)`;
}

const NOT_CONNECTED = "there is no connection now";

/** What the client says in words of its own options, of which its user has set none. */
const IN_OUR_WORDS: readonly (readonly [RegExp, string])[] = [
  [/max retries per request/i, "the connection broke before an answer came"],
  [/Stream isn't writeable/, NOT_CONNECTED],
];

function inOurWords(message: string): string {
  return IN_OUR_WORDS.find(([theirs]) => theirs.test(message))?.[1] ?? message;
}

/** The client's own errors have no codes: these are the words of ioredis 5 and 6. */
function clientKind(name: string | undefined, message: string, code: unknown): RedisFailureKind {
  if (/timed out/i.test(message) && !/connect/i.test(message)) return "timeout";
  if (name === "MaxRetriesPerRequestError" || name === "AbortError") return "cut";
  if (/Connection is closed|Socket timeout/i.test(message) || code === "EPIPE" || code === "ECONNRESET") return "cut";
  if (/Too many Cluster redirections/i.test(message)) return "clusterdown";
  if (code === "ERR_SSL_WRONG_VERSION_NUMBER") return "foreign";
  if (name === "ParserError" || /Protocol error|Unknown RESP type/i.test(message)) return "foreign";
  return typeof code === "string" || /writeable|ready|available|refresh slots|connect/i.test(message)
    ? "unreachable"
    : "other";
}

/** What the client says of commands once it has told why there is no connection: no reason of its own. */
export function isEcho({ message }: RedisFailure): boolean {
  return message === NOT_CONNECTED;
}

function withRemedy(kind: RedisFailureKind, message: string): string {
  const remedy = REMEDIES[kind];
  return remedy === undefined ? message : `${message.replace(/\.$/, "")} (${remedy})`;
}

/** No waiting opens it again. */
export function closedError(scope: string): GovernanceBackendError {
  return new GovernanceBackendError("the governor is closed", { scope, isLasting: true });
}

/** A failure as the governor's callers get it; `address` as people may see it. */
export function governanceError(scope: string, address: string, failure: RedisFailure): GovernanceBackendError {
  const { isLasting, message } = failure;
  const text = `${verdictOn(address, failure)}: ${message}`;
  return new GovernanceBackendError(text, { scope, cause: failure, isLasting });
}

function verdictOn(address: string, { kind, wasAnswered }: RedisFailure): string {
  if (kind === "foreign") return `no Redis answers at ${address}`;
  if (kind === "unreachable") return `Redis at ${address} can't be reached`;
  return `Redis at ${address} ${wasAnswered ? "refuses" : "does not answer"}`;
}

/** Something that a batch holds can't be sent, or the script can't take it, although all else is well. */
export function untakenError(failure: Error): RequestRejectedError {
  const what = "the limits in Redis can't be asked about this call, though they can about others";
  return new RequestRejectedError(`${what}: ${failure.message}`, { cause: failure });
}
