import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { isRunning, signalTo } from "../services/processes.js";
import type { FromWorker, GrantNote, RowCount, Tally, ToWorker, WorkerPlan } from "./messages.js";

/** What became of one process, by this process's clock (epoch ms). */
export interface Life {
  readonly pid: number;
  /** Which of the places of the fleet it fills. */
  readonly slot: number;
  killedAtMs: number | null;
  readonly frozen: { readonly fromMs: number; toMs: number }[];
  /** As it told last; of one that ended by itself, when everything was done. */
  rows: RowCount;
}

/** A permit with who has it and since when. */
export interface NotedGrant extends GrantNote {
  readonly pid: number;
  readonly atMs: number;
}

/** A permit that was given, or may have been, and when the process learnt that. */
export interface Told {
  readonly id: string;
  readonly atMs: number;
}

export interface Member {
  readonly child: ChildProcess;
  readonly life: Life;
  tally: Tally;
  isFrozen: boolean;
}

const PROGRAM = new URL("./fleet-worker.js", import.meta.url);
const STOP_WITHIN_MS = 60_000;
const NO_ROWS: RowCount = { given: 0, written: 0, dropped: 0 };

/** Called with everything that processes write and with what their errors say. */
export type Listener = (place: "output" | "errors", pid: number, text: string) => void;

/** The processes of the fleet: started, struck, replaced, and at the end asked to stop. */
export class Crew {
  readonly lives: Life[] = [];
  readonly grants = new Map<string, NotedGrant>();
  /** One that came too late is asked for again under its id, so an id may be here twice. */
  readonly given: Told[] = [];
  readonly doubts: Told[] = [];
  /** Attempts that may have been sent although their row was not committed. */
  readonly unwritten = new Set<string>();
  readonly troubles: string[] = [];
  readonly #members = new Set<Member>();
  readonly #gone: Tally[] = [];
  #stopping = false;

  /** `planOf`: what the process in that place is to do. */
  constructor(
    readonly planOf: (slot: number) => WorkerPlan,
    private readonly listener: Listener,
  ) {}

  start(slot: number): void {
    const child = fork(PROGRAM, [], { stdio: ["ignore", "pipe", "pipe", "ipc"] });
    const life: Life = { pid: child.pid ?? 0, slot, killedAtMs: null, frozen: [], rows: NO_ROWS };
    const member: Member = { child, life, tally: { answered: 0, failed: {}, rows: NO_ROWS }, isFrozen: false };
    this.lives.push(life);
    this.#members.add(member);
    let said = "";
    for (const output of [child.stdout, child.stderr]) {
      output?.on("data", (bytes: Buffer) => {
        const text = bytes.toString();
        said = (said + text).slice(-2_000);
        this.listener("output", life.pid, text);
      });
    }
    child.on("message", (message: FromWorker) => this.#hear(member, message));
    child.on("error", () => {});
    child.on("exit", (code) => {
      this.#members.delete(member);
      this.#gone.push(member.tally);
      if (life.killedAtMs !== null || (code === 0 && this.#stopping)) return;
      this.troubles.push(`worker ${life.pid} ended by itself with code ${code}: ${said}`);
    });
    send(child, { kind: "start", plan: this.planOf(slot) });
  }

  /** Those that run and are not frozen. */
  get active(): readonly Member[] {
    return [...this.#members].filter(({ isFrozen, life }) => !isFrozen && life.killedAtMs === null);
  }

  /** SIGKILL, and another process in its place. */
  kill(member: Member): void {
    member.life.killedAtMs = Date.now();
    signalTo(member.life.pid, "SIGKILL");
    this.start(member.life.slot);
  }

  /** Its wall clock is off by so much from now on. */
  setClock(member: Member, offsetMs: number): void {
    send(member.child, { kind: "clock", offsetMs });
  }

  freeze(member: Member): void {
    member.isFrozen = true;
    member.life.frozen.push({ fromMs: Date.now(), toMs: Number.POSITIVE_INFINITY });
    signalTo(member.life.pid, "SIGSTOP");
  }

  wake(member: Member): void {
    const last = member.life.frozen.at(-1);
    if (last !== undefined) last.toMs = Date.now();
    signalTo(member.life.pid, "SIGCONT");
    member.isFrozen = false;
  }

  /** Answers so far of each living process. */
  answered(): ReadonlyMap<number, number> {
    return new Map([...this.#members].map(({ life, tally }) => [life.pid, tally.answered]));
  }

  /** Everybody ends what it has begun; who has not ended in time is killed, and told as trouble. */
  async stop(): Promise<void> {
    this.#stopping = true;
    const all = [...this.#members];
    for (const { child } of all) send(child, { kind: "stop" });
    const late = setTimeout(() => {
      for (const { life } of this.#members) {
        this.troubles.push(`worker ${life.pid} did not end within ${STOP_WITHIN_MS / 1_000} s`);
        signalTo(life.pid, "SIGKILL");
      }
    }, STOP_WITHIN_MS);
    await Promise.all(all.map(({ child }) => (child.exitCode === null ? once(child, "exit") : undefined)));
    clearTimeout(late);
  }

  /** Whatever is still there, at once. */
  endAll(): void {
    this.#stopping = true;
    for (const { life } of this.#members) {
      life.killedAtMs ??= Date.now();
      if (isRunning(life.pid)) signalTo(life.pid, "SIGKILL");
    }
  }

  total(): Omit<Tally, "rows"> {
    const failed: Record<string, number> = {};
    let answered = 0;
    for (const tally of [...this.#gone, ...[...this.#members].map((member) => member.tally)]) {
      answered += tally.answered;
      for (const [name, count] of Object.entries(tally.failed)) failed[name] = (failed[name] ?? 0) + count;
    }
    return { answered, failed };
  }

  #hear(member: Member, message: FromWorker): void {
    if (message.kind === "tally") {
      member.tally = message.tally;
      member.life.rows = message.tally.rows;
    } else if (message.kind === "error") this.listener("errors", member.life.pid, message.text);
    else if (message.kind === "trouble") this.troubles.push(`worker ${member.life.pid}: ${message.text}`);
    else if (message.kind === "unwritten") for (const id of message.ids) this.unwritten.add(id);
    else if (message.kind === "doubts") {
      for (const id of message.ids) this.doubts.push({ id, atMs: message.atMs });
    } else {
      const { atMs, grants } = message;
      for (const grant of grants) {
        this.given.push({ id: grant.id, atMs });
        // Of two under one id the newest counts.
        this.grants.set(grant.id, { ...grant, pid: member.life.pid, atMs });
      }
    }
  }
}

function send(child: ChildProcess, message: ToWorker): void {
  // It may just have ended.
  if (child.connected) child.send(message, () => {});
}
