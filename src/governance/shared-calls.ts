import { type Call, type GovernEnvironment, interruptOf, startCall } from "./call.js";
import { ended, govern } from "./govern.js";
import { endShared, type HitFacts } from "./hit.js";
import type { Interrupt, Interruption } from "./interrupt.js";
import type { Answered, CallOptions, Governed, Operation } from "./operation.js";
import { interruptionError } from "./permit.js";

/** What a call got that may have shared its attempts with others. */
export interface Joined<Completion> {
  readonly governed: Governed<null, Completion>;
  readonly answered: Answered<Completion>;
  /** null = the attempts' own rows stand for this call; else it has one of its own, at no cost. */
  readonly hit: HitFacts | null;
}

type Answer<Completion> = Omit<Joined<Completion>, "hit">;

/** One call among those that share a chain. */
interface Member {
  readonly call: Call;
  readonly options: CallOptions;
  readonly joinedMs: number;
}

/** A chain of attempts that several calls wait for. There is no leader: whoever is left first in line owns its rows. */
interface Chain<Completion> {
  readonly interrupt: ChainInterrupt;
  readonly members: Set<Member>;
  readonly answer: Promise<Answer<Completion>>;
  /** What rows and texts of the attempts tell: those of the first in line. */
  readonly options: ChainOptions;
  /** Set once the answer is there: from then on leaving comes too late. */
  owner: Member | null;
}

/**
 * Identical calls in flight share one chain of attempts (spec 04 "In-flight sharing"): its answer or error goes to all,
 * a call that leaves only detaches, and the last one to leave ends the chain.
 */
export class SharedCalls<Completion> {
  readonly #environment: GovernEnvironment;
  readonly #chains = new Map<string, Chain<Completion>>();

  constructor(environment: GovernEnvironment) {
    this.#environment = environment;
  }

  /** Joins the chain of this key or begins one. Rejects as `govern` does. */
  async run(key: string, operation: Operation<null, Completion>, options: CallOptions): Promise<Joined<Completion>> {
    const interrupt = interruptOf(this.#environment, options);
    const call = startCall(this.#environment, operation as Operation<unknown, unknown>, options, interrupt);
    const member: Member = { call, options, joinedMs: this.#environment.runtime.now() };
    try {
      if (interrupt.fired !== null) throw await ended(call, interruptionError(call, interrupt.fired));
      const chain = this.#chains.get(key) ?? this.#begin(key, operation, options, member);
      chain.members.add(member);
      return await this.#share(key, chain, member);
    } finally {
      interrupt.dispose();
    }
  }

  #begin(key: string, operation: Operation<null, Completion>, options: CallOptions, first: Member): Chain<Completion> {
    const members = new Set([first]);
    const interrupt = new ChainInterrupt(members);
    const own: ChainOptions = { ...options };
    const governed = govern(this.#environment, operation, own, interrupt);
    const answer = governed.then(async (told) => ({ governed: told, answered: await told.ended }));
    const chain: Chain<Completion> = { interrupt, members, answer, options: own, owner: null };
    this.#chains.set(key, chain);
    const settle = (): void => {
      chain.owner = firstOf(members);
      this.#close(key, chain);
    };
    answer.then(settle, settle);
    return chain;
  }

  /** Nobody may join any more. */
  #close(key: string, chain: Chain<Completion>): void {
    if (this.#chains.get(key) === chain) this.#chains.delete(key);
  }

  async #share(key: string, chain: Chain<Completion>, member: Member): Promise<Joined<Completion>> {
    const { call } = member;
    const left = new Promise<Interruption>((resolve) => {
      call.interrupt.listen((interruption) => {
        if (chain.owner !== null) return;
        if (chain.members.size > 1) {
          chain.members.delete(member);
          speakFor(chain.options, firstOf(chain.members));
          resolve(interruption);
        } else {
          this.#close(key, chain);
          // The deadline that has passed is the last one's.
          chain.options.deadlineMs = member.options.deadlineMs;
          chain.interrupt.fire(interruption);
        }
      });
    });
    const outcome = await Promise.race([left, chain.answer]).catch((error: unknown) => new Failure(error));
    const isOwner = chain.owner === member;
    if (outcome instanceof Failure) throw isOwner ? outcome.error : await ended(call, outcome.error);
    if ("kind" in outcome) throw await ended(call, interruptionError(call, outcome));
    const { governed, answered } = outcome;
    const hit = isOwner ? null : await endShared(call, governed, answered.facts, member.joinedMs);
    return { governed, answered, hit };
  }
}

type ChainOptions = { -readonly [Option in keyof CallOptions]: CallOptions[Option] | undefined };

function speakFor(options: ChainOptions, member: Member | null): void {
  options.sessionId = member?.options.sessionId;
  options.parentCallId = member?.options.parentCallId;
}

function firstOf(members: ReadonlySet<Member>): Member | null {
  for (const member of members) return member;
  return null;
}

class Failure {
  readonly error: unknown;

  constructor(error: unknown) {
    this.error = error;
  }
}

/** Fires when the last member wants to leave; until then the one with the most time left decides. */
class ChainInterrupt implements Interrupt {
  readonly isShared = true;
  readonly #members: ReadonlySet<Member>;
  #fired: Interruption | null = null;
  #listener: ((interruption: Interruption) => void) | null = null;

  constructor(members: ReadonlySet<Member>) {
    this.#members = members;
  }

  get fired(): Interruption | null {
    return this.#fired;
  }

  remainingMs(): number {
    let longestMs = Number.NEGATIVE_INFINITY;
    for (const { call } of this.#members) longestMs = Math.max(longestMs, call.interrupt.remainingMs());
    return longestMs;
  }

  listen(listener: (interruption: Interruption) => void): () => void {
    this.#listener = listener;
    return () => {
      if (this.#listener === listener) this.#listener = null;
    };
  }

  fire(interruption: Interruption): void {
    this.#fired = interruption;
    const told = this.#listener;
    this.#listener = null;
    told?.(interruption);
  }

  dispose(): void {
    this.#listener = null;
  }
}
