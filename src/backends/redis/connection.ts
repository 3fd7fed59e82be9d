import { createHash } from "node:crypto";
import { givenValue } from "../../domain/given-value.js";
import { msText } from "../../domain/ms-text.js";
import { methodProblems, RUNTIME_REMEDY } from "../../domain/option-values.js";
import { ConfigError, type ConfigProblem } from "../../errors.js";
import type { Runtime } from "../../ports/runtime.js";
import { createSystemRuntime } from "../system.js";
import { addressProblems } from "./address-problems.js";
import { type OpenedClient, openClient, type RedisAddress, type RedisClient } from "./client.js";
import { classifyRedisError, isEcho, RedisFailure } from "./failure.js";
import { watchForStrangers } from "./stranger.js";
import { openSubscriber, type Subscriber } from "./subscriber.js";

export interface RedisConnectionOptions extends RedisAddress {
  /** Longest wait for the answer to one command, with the wait for a connection in it, in ms. Default 250. */
  readonly timeoutMs?: number;
  /** Its clock and timers, for tests. */
  readonly runtime?: Pick<Runtime, "now" | "setTimer">;
}

/** Options that any connection takes. */
export const CONNECTION_OPTIONS = ["url", "client", "cluster", "options", "timeoutMs", "runtime"] as const;

export type RedisArgument = string | Buffer | number;

/** A Lua script and its name on the server. */
export interface RedisScript {
  readonly text: string;
  readonly sha1: string;
}

export function redisScript(text: string): RedisScript {
  return { text, sha1: createHash("sha1").update(text).digest("hex") };
}

export const DEFAULT_TIMEOUT_MS = 250;
const MOST_TIMEOUT_MS = 60_000;

/** What is wrong with the options of a connection; `key` names them. */
export function connectionProblems(options: RedisConnectionOptions, key: string): ConfigProblem[] {
  const { timeoutMs = DEFAULT_TIMEOUT_MS, runtime } = options;
  return [
    ...addressProblems(options, key),
    ...timeoutProblems(timeoutMs, `${key}.timeoutMs`),
    ...(runtime === undefined ? [] : methodProblems(`${key}.runtime`, runtime, ["now", "setTimer"], RUNTIME_REMEDY)),
  ];
}

function timeoutProblems(timeoutMs: unknown, key: string): ConfigProblem[] {
  if (typeof timeoutMs === "number" && timeoutMs > 0 && timeoutMs <= MOST_TIMEOUT_MS) return [];
  const remedy = `Give milliseconds above 0, up to ${MOST_TIMEOUT_MS}.`;
  return [{ key, value: givenValue(timeoutMs), problem: "is out of range", remedy }];
}

/** A timer that is this late says that this process was busy, not Redis slow: the answer may lie in the socket unread. */
const LATE_MS = 20;

/**
 * Redis as backends use it: every command ends by its deadline, whatever the client and the network do. While Redis is
 * away commands fail at once; while a connection is being made for the first time, or again after it broke, they wait for
 * it within their deadline. Every failure is a RedisFailure.
 */
export class RedisConnection {
  /** For people: with the user, without the password. */
  readonly shown: string;
  readonly isCluster: boolean;
  readonly timeoutMs: number;
  readonly #opened: OpenedClient;
  readonly #runtime: Pick<Runtime, "now" | "setTimer">;
  readonly #listeners: readonly (readonly [string, (argument: unknown) => void])[];
  /** Each waits for a connection; called with what it came to. */
  readonly #waiting = new Set<(failure: RedisFailure | null) => void>();
  /** Why there is no connection, since the last try failed; null while there is one or one may come. */
  #down: RedisFailure | null = null;
  /** The server has no database of that number; for ever, since the address says it. */
  #wrongDatabase: RedisFailure | null = null;
  #inFlight = 0;
  #closed = false;
  #whenIdle: (() => void) | null = null;

  /** Connects with the first command. Throws ConfigError for an address that can't be one; `key` names the option. */
  constructor(options: RedisConnectionOptions, key = "redis") {
    const problems = connectionProblems(options, key);
    if (problems.length > 0) throw new ConfigError(problems);
    const { timeoutMs = DEFAULT_TIMEOUT_MS, runtime = createSystemRuntime() } = options;
    this.#opened = openClient(options, { timeoutMs, now: () => runtime.now() }, key);
    this.#runtime = runtime;
    this.timeoutMs = timeoutMs;
    this.shown = this.#opened.shown;
    this.isCluster = this.#opened.isCluster;
    const { client, clean } = this.#opened;
    this.#listeners = [
      ["ready", () => this.#connected()],
      ["error", (error: unknown) => this.#failed(classifyRedisError(error, clean))],
      ["end", () => this.#failed(new RedisFailure("unreachable", "the client is closed"))],
      ...(this.isCluster ? [] : this.#strangers(client)),
    ];
    for (const [event, listener] of this.#listeners) client.on(event, listener);
  }

  /** Redis answers, as far as is known: the last try to connect did not fail. */
  get ok(): boolean {
    return this.#down === null && !this.#closed;
  }

  /** One command; texts in the reply are strings. Rejects with RedisFailure. */
  command(name: string, ...args: RedisArgument[]): Promise<unknown> {
    return this.#send(() => this.#opened.client.call(name, ...args));
  }

  /** As `command`, with Buffers. */
  commandBuffer(name: string, ...args: RedisArgument[]): Promise<unknown> {
    return this.#send(() => this.#opened.client.callBuffer(name, ...args));
  }

  /**
   * Runs a script by its name; a server that doesn't know it is given it once, within the same deadline. Texts in the
   * reply are Buffers. One round trip but for the first time and after SCRIPT FLUSH.
   */
  run(script: RedisScript, keys: readonly RedisArgument[], args: readonly RedisArgument[]): Promise<unknown> {
    const { client } = this.#opened;
    return this.#send(async (isOver) => {
      try {
        return await client.callBuffer("EVALSHA", script.sha1, keys.length, ...keys, ...args);
      } catch (error) {
        const isUnknown = classifyRedisError(error).kind === "noscript";
        if (!isUnknown || isOver()) throw error;
        return await client.callBuffer("EVAL", script.text, keys.length, ...keys, ...args);
      }
    });
  }

  /** A second connection that listens. */
  subscriber(hear: (text: string) => void): Subscriber {
    return openSubscriber(this.#opened.client, hear);
  }

  /** Waits for what is under way, at most one deadline, and closes a client made here. Later commands fail. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#failed(new RedisFailure("unreachable", "the connection is closed"));
    if (this.#inFlight > 0) await new Promise<void>((resolve) => (this.#whenIdle = resolve));
    const { client, isOwn } = this.#opened;
    if (isOwn) client.disconnect();
    // The own client may still tell of its end, and an error nobody listens to ends the process.
    else for (const [event, listener] of this.#listeners) client.off(event, listener);
  }

  #strangers(client: RedisClient) {
    return watchForStrangers(client, {
      runtime: this.#runtime,
      timeoutMs: this.timeoutMs,
      isOver: () => this.#closed,
      tell: (failure) => this.#failed(failure),
    });
  }

  #connected(): void {
    this.#down = null;
    this.#answerWaiting(null);
  }

  #failed(failure: RedisFailure): void {
    // The client would go on in database 0: what is kept there is somebody else's.
    if (failure.kind === "nodatabase") this.#wrongDatabase ??= failure;
    // The user's client tells of single commands too; only what leaves it without a connection counts.
    if (this.#opened.client.status === "ready" && !this.#closed) return;
    if (this.#down !== null && isEcho(failure)) return;
    // Who waits for a connection has sent nothing, so nothing is in doubt, whatever befell the connection.
    this.#down = failure.mayHaveRun ? new RedisFailure("unreachable", failure.message) : failure;
    this.#answerWaiting(this.#down);
  }

  #answerWaiting(failure: RedisFailure | null): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const answer of waiting) answer(failure);
  }

  #send(start: (isOver: () => boolean) => Promise<unknown>): Promise<unknown> {
    const { client, clean } = this.#opened;
    if (this.#wrongDatabase !== null) return Promise.reject(this.#wrongDatabase);
    if (this.#down !== null && (this.#closed || client.status !== "ready")) return Promise.reject(this.#down);
    return new Promise((resolve, reject) => {
      this.#inFlight += 1;
      let over = false;
      let sent = false;
      const end = (settle: () => void): void => {
        if (over) return;
        over = true;
        cancel();
        this.#waiting.delete(begin);
        this.#inFlight -= 1;
        if (this.#inFlight === 0) this.#whenIdle?.();
        settle();
      };
      const fail = (error: unknown): void => end(() => reject(classifyRedisError(error, clean)));
      /** The connection was on its way out already, so nothing was sent: the next one is waited for. */
      const failOrWait = (error: unknown): void => {
        const { kind } = classifyRedisError(error);
        if (over || this.isCluster || this.#down !== null || kind !== "unreachable") fail(error);
        else this.#waiting.add(begin);
      };
      const begin = (failure: RedisFailure | null): void => {
        sent = failure === null;
        if (failure !== null) fail(failure);
        else start(() => over).then((reply) => end(() => resolve(reply)), failOrWait);
      };
      const cancel = this.#deadline(() => fail(this.#tooLate(sent)));
      if (client.status === "ready") return begin(null);
      this.#waiting.add(begin);
      // A failed try is told by the client's events.
      if (client.status === "wait") client.connect().catch(() => {});
    });
  }

  #tooLate(sent: boolean): RedisFailure {
    if (sent) return new RedisFailure("timeout", `no answer within ${msText(this.timeoutMs)}`);
    return new RedisFailure("unreachable", `no connection within ${msText(this.timeoutMs)}`);
  }

  #deadline(callback: () => void): () => void {
    const dueMs = this.#runtime.now() + this.timeoutMs;
    let cancel = this.#runtime.setTimer(this.timeoutMs, () => {
      if (this.#runtime.now() - dueMs < LATE_MS) return callback();
      cancel = this.#runtime.setTimer(LATE_MS, callback);
    });
    return () => cancel();
  }
}
