import type { OpenAttempt } from "../domain/record.js";
import type { StoredRow } from "./columns.js";
import type { TelemetryFile } from "./store.js";
import { attemptInFlight, attemptOf, type TracedAttempt, textOf } from "./traced-attempt.js";

export interface TracedCall {
  readonly requestId: string;
  readonly operation: string | null;
  readonly scope: string | null;
  readonly sessionId: string | null;
  /** What the caller named as the step above this call. */
  readonly parentCallId: string | null;
  /** Outcome of its final row; null while it has none. */
  readonly outcome: string | null;
  readonly startedAtMs: number | null;
  readonly attempts: readonly TracedAttempt[];
  /** Calls whose parent is this call or one of its attempts. */
  readonly children: readonly TracedCall[];
}

export interface Trace {
  /** What the id turned out to be. */
  readonly found: "session" | "call" | "attempt" | "parent";
  readonly id: string;
  readonly calls: readonly TracedCall[];
  /** Calls below the deepest level shown were left out. */
  readonly truncated: boolean;
  /** Lines of the file that could not be read. */
  readonly unreadableLines: number;
}

/** Each level below a call is one more reading of the file. */
const MAX_LEVELS = 32;

interface CallRows {
  readonly rows: StoredRow[];
  readonly open: OpenAttempt[];
}

type Calls = Map<string, CallRows>;

/**
 * Everything a file knows of one session, call, attempt or parent step, as a tree by `parent_call_id`. Only what belongs
 * to it is kept in memory. null = the file knows no such id. Throws TelemetryFileError.
 */
export async function traceOf(file: TelemetryFile, id: string): Promise<Trace | null> {
  const open = await file.openAttempts();
  const direct = await collect(file, open, new Set([id]), (entry) => kindOf(entry, id) !== null);
  if (direct.size === 0) return null;
  const found = foundAs(direct, id);
  if (found === "session")
    return { found, id, calls: treeOf(direct), truncated: false, unreadableLines: file.unreadableLines };
  const { calls, truncated } = await withDescendants(file, open, direct);
  return { found, id, calls: treeOf(calls), truncated, unreadableLines: file.unreadableLines };
}

interface Entry {
  readonly callId: string;
  readonly requestId: string;
  readonly sessionId: string | null;
  readonly parentCallId: string | null;
}

const KINDS = ["session", "call", "attempt", "parent"] as const;

function kindOf(entry: Entry, id: string): Trace["found"] | null {
  if (entry.sessionId === id) return "session";
  if (entry.requestId === id) return "call";
  if (entry.callId === id) return "attempt";
  return entry.parentCallId === id ? "parent" : null;
}

function foundAs(calls: Calls, id: string): Trace["found"] {
  const kinds = new Set(entriesOf(calls).map((entry) => kindOf(entry, id)));
  return KINDS.find((kind) => kinds.has(kind)) ?? "call";
}

function entriesOf(calls: Calls): Entry[] {
  return [...calls.values()].flatMap(({ rows, open }) => [...rows.map(entryOf), ...open]);
}

function entryOf(row: StoredRow): Entry {
  return {
    callId: String(row.call_id),
    requestId: String(row.request_id ?? row.call_id),
    sessionId: textOf(row.session_id),
    parentCallId: textOf(row.parent_call_id),
  };
}

/** More of them are looked for in every row: no store takes a question of any length. */
const MOST_IDS = 200;

const rowsAbout = (file: TelemetryFile, ids: ReadonlySet<string>) =>
  file.rows(ids.size > MOST_IDS ? { withoutTexts: true } : { withoutTexts: true, ids: [...ids] });

/** The calls of which some entry is wanted, whole: the other attempts of a call belong to it. `ids`: theirs. */
async function collect(
  file: TelemetryFile,
  open: readonly OpenAttempt[],
  ids: ReadonlySet<string>,
  wanted: (entry: Entry) => boolean,
): Promise<Calls> {
  const requestIds = new Set(open.filter(wanted).map((entry) => entry.requestId));
  for await (const row of rowsAbout(file, ids)) {
    const entry = entryOf(row);
    if (wanted(entry)) requestIds.add(entry.requestId);
  }
  const calls: Calls = new Map([...requestIds].map((requestId) => [requestId, { rows: [], open: [] }]));
  if (calls.size === 0) return calls;
  for await (const row of rowsAbout(file, requestIds)) calls.get(entryOf(row).requestId)?.rows.push(row);
  for (const entry of open) calls.get(entry.requestId)?.open.push(entry);
  return calls;
}

/** Adds the calls below, level by level, until a level brings nothing new. */
async function withDescendants(file: TelemetryFile, open: readonly OpenAttempt[], calls: Calls) {
  const all: Calls = new Map(calls);
  let level: Calls = calls;
  for (let depth = 0; level.size > 0 && depth < MAX_LEVELS; depth += 1) {
    const ids = new Set(entriesOf(level).flatMap(({ callId, requestId }) => [callId, requestId]));
    const below = await collect(file, open, ids, ({ parentCallId }) => parentCallId !== null && ids.has(parentCallId));
    level = new Map([...below].filter(([requestId]) => !all.has(requestId)));
    for (const [requestId, rows] of level) all.set(requestId, rows);
  }
  return { calls: all, truncated: level.size > 0 };
}

/**
 * By their start. A call that names itself or one below it as its parent is a root.
 * Without recursion: a chain may be longer than any stack.
 */
function treeOf(calls: Calls): TracedCall[] {
  const owner = new Map<string, string>();
  for (const { callId, requestId } of entriesOf(calls)) owner.set(callId, requestId).set(requestId, requestId);
  const parents = new Map<string, string>();
  for (const [requestId, rows] of calls) {
    const named = entriesOfCall(rows)[0]?.parentCallId;
    const parent = typeof named === "string" ? owner.get(named) : undefined;
    if (parent !== undefined) parents.set(requestId, parent);
  }
  for (const requestId of callsInCycles(parents)) parents.delete(requestId);
  const children = new Map<string, TracedCall[]>([...calls.keys()].map((requestId) => [requestId, []]));
  const roots: TracedCall[] = [];
  for (const [requestId, rows] of calls) {
    const parent = parents.get(requestId);
    const among = parent === undefined ? roots : children.get(parent)!;
    among.push(tracedCall(requestId, rows, children.get(requestId)!));
  }
  for (const siblings of [roots, ...children.values()]) {
    siblings.sort((a, b) => (a.startedAtMs ?? 0) - (b.startedAtMs ?? 0));
  }
  return roots;
}

function callsInCycles(parents: ReadonlyMap<string, string>): string[] {
  const inCycles: string[] = [];
  /** Call → the walk that came by it first. */
  const seen = new Map<string, string>();
  for (const start of parents.keys()) {
    let at: string | undefined = start;
    while (at !== undefined && !seen.has(at)) {
      seen.set(at, start);
      at = parents.get(at);
    }
    if (at === undefined || seen.get(at) !== start) continue;
    const first = at;
    do {
      inCycles.push(at);
      at = parents.get(at)!;
    } while (at !== first);
  }
  return inCycles;
}

/** Every call of a tree with its depth, each before those below it. */
export function* walkCalls(
  calls: readonly TracedCall[],
): Generator<{ readonly call: TracedCall; readonly depth: number }> {
  const left = [...calls].reverse().map((call) => ({ call, depth: 0 }));
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    yield next;
    for (const child of [...next.call.children].reverse()) left.push({ call: child, depth: next.depth + 1 });
  }
}

function entriesOfCall({ rows, open }: CallRows): Entry[] {
  return [...rows.map(entryOf), ...open];
}

function tracedCall(requestId: string, { rows, open }: CallRows, children: readonly TracedCall[]): TracedCall {
  const recorded = new Set(rows.map((row) => row.call_id));
  const inFlight = open.filter(({ callId }) => !recorded.has(callId));
  const attempts = [...rows.map(attemptOf), ...inFlight.map(attemptInFlight)].sort((a, b) =>
    a.callId < b.callId ? -1 : 1,
  );
  const [first] = entriesOfCall({ rows, open });
  return {
    requestId,
    operation: textOf(rows[0]?.operation),
    scope: textOf(rows[0]?.scope) ?? open[0]?.scope ?? null,
    sessionId: first?.sessionId ?? null,
    parentCallId: first?.parentCallId ?? null,
    outcome: attempts.find(({ final }) => final)?.outcome ?? null,
    startedAtMs: attempts[0]?.startedAtMs ?? null,
    attempts,
    children,
  };
}
