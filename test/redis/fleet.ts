import { randomInt } from "node:crypto";
import { expect } from "vitest";
import { RedisGovernor, type RedisGovernorOptions } from "../../src/backends/redis/governor.js";
import type { SourceConfig } from "../../src/domain/source.js";
import type {
  GovernorEvent,
  Grant,
  Outcome,
  Refusal,
  Settle,
  TickBatch,
  TickReply,
  Want,
} from "../../src/ports/governor.js";
import { isRefusal, settleOf, sourceConfig } from "../../src/testing/contracts/governor/bench.js";

/** One process of a fleet: its own governor, its own connection, its own name. */
export class Worker {
  readonly events: GovernorEvent[] = [];
  #asked = 0;

  constructor(
    readonly governor: RedisGovernor,
    readonly name: string,
  ) {
    governor.onEvent((event) => this.events.push(event));
  }

  tick(batch: Partial<TickBatch>): Promise<TickReply> {
    const empty = { settles: [], verdicts: [], renew: [], wants: [] };
    return this.governor.tick({ worker: this.name, seed: randomInt(2 ** 31), ...empty, ...batch });
  }

  newWant(candidates: string | readonly string[], overrides: Partial<Want> = {}): Want {
    this.#asked += 1;
    const leaseId = `${this.name}-${this.#asked}`;
    const names = typeof candidates === "string" ? [candidates] : candidates;
    const neutral = { failedHere: [], limitedHere: [], estTokens: 100, priority: 1, waitedMs: 0 };
    return { leaseId, callId: leaseId, candidates: names, ...neutral, ...overrides };
  }

  async want(candidates: string | readonly string[], overrides: Partial<Want> = {}): Promise<Grant | Refusal> {
    const { grants, refusals } = await this.tick({ wants: [this.newWant(candidates, overrides)] });
    return grants[0] ?? refusals[0]!;
  }

  async granted(candidates: string | readonly string[], overrides: Partial<Want> = {}): Promise<Grant> {
    const answer = await this.want(candidates, overrides);
    if (isRefusal(answer)) expect.fail(`${this.name} was refused: ${JSON.stringify(answer)}`);
    return answer;
  }

  async refused(candidates: string | readonly string[], overrides: Partial<Want> = {}): Promise<Refusal> {
    const answer = await this.want(candidates, overrides);
    if (!isRefusal(answer)) expect.fail(`${this.name} was granted: ${JSON.stringify(answer)}`);
    return answer;
  }

  async settle(grant: Grant, outcome: Outcome = "success", overrides: Partial<Settle> = {}): Promise<boolean> {
    const { applied } = await this.tick({ settles: [settleOf(grant, outcome, overrides)] });
    return applied[0] === true;
  }

  async renew(...grants: readonly Grant[]): Promise<readonly boolean[]> {
    return (await this.tick({ renew: grants.map(({ leaseId }) => leaseId) })).applied;
  }

  async inflight(source: string): Promise<number> {
    return (await this.source(source)).inflight;
  }

  async source(name: string) {
    return (await this.governor.snapshot()).sources.find((source) => source.name === name)!;
  }
}

export interface FleetOptions extends Partial<Omit<RedisGovernorOptions, "sources">> {
  readonly sources?: Readonly<Record<string, Partial<SourceConfig>>>;
}

let scopes = 0;

/** Workers of one scope of its own, each as another process would be; `close` ends their connections. */
export class Fleet {
  readonly scope: string;
  readonly #options: FleetOptions;
  readonly #workers: Worker[] = [];

  constructor(options: FleetOptions) {
    scopes += 1;
    this.scope = options.scope ?? `fleet-${process.pid}-${scopes}`;
    this.#options = options;
  }

  /** Keys of the scope in the server's words: `key("s")`. */
  key(name: string): string {
    return `pgw:{${this.scope}}:${name}`;
  }

  worker(overrides: FleetOptions = {}): Worker {
    const { sources = { a: {} }, ...options } = { ...this.#options, ...overrides };
    const configs = Object.entries(sources).map(([name, source]) => sourceConfig(name, source));
    const governor = new RedisGovernor({ ...options, scope: this.scope, sources: configs });
    const worker = new Worker(governor, `w${this.#workers.length + 1}`);
    this.#workers.push(worker);
    return worker;
  }

  async close(): Promise<void> {
    await Promise.all(this.#workers.map(({ governor }) => governor.close()));
  }
}
