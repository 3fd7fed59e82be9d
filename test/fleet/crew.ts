import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { isRunning, signalTo } from "../services/processes.js";
import type { FromWorker, GrantNote, Tally, ToWorker, WorkerPlan } from "./messages.js";

/** What became of one process, by this process's clock (epoch ms). */
export interface Life {
  readonly pid: number;
  killedAtMs: number | null;
  readonly frozen: { readonly fromMs: number; toMs: number }[];
}

/** A permit with who has it and since when. */
export interface NotedGrant extends GrantNote {
  readonly pid: number;
  readonly atMs: number;
}

interface Member {
  readonly child: ChildProcess;
  readonly life: Life;
  tally: Tally;
  isFrozen: boolean;
}

const PROGRAM = new URL("./fleet-worker.js", import.meta.url);
const STOP_WITHIN_MS = 60_000;

/** The processes of the fleet: started, struck, replaced, and at the end asked to stop. */
export class Crew {
  readonly lives: Life[] = [];
  readonly grants = new Map<string, NotedGrant>();
  readonly troubles: string[] = [];
  readonly #members = new Set<Member>();
  readonly #gone: Tally[] = [];
  #stopping = false;

  constructor(readonly plan: WorkerPlan) {}

  start(): void {
    const child = fork(PROGRAM, [], { stdio: ["ignore", "ignore", "pipe", "ipc"] });
    const life: Life = { pid: child.pid ?? 0, killedAtMs: null, frozen: [] };
    const member: Member = { child, life, tally: { answered: 0, failed: {} }, isFrozen: false };
    this.lives.push(life);
    this.#members.add(member);
    let said = "";
    child.stderr?.on("data", (bytes: Buffer) => {
      said = (said + bytes.toString()).slice(-2_000);
    });
    child.on("message", (message: FromWorker) => this.#hear(member, message));
    child.on("error", () => {});
    child.on("exit", (code) => {
      this.#members.delete(member);
      this.#gone.push(member.tally);
      if (life.killedAtMs !== null || (code === 0 && this.#stopping)) return;
      this.troubles.push(`worker ${life.pid} ended by itself with code ${code}: ${said}`);
    });
    send(child, { kind: "start", plan: this.plan });
  }

  /** Those that run and are not frozen. */
  get active(): readonly Member[] {
    return [...this.#members].filter(({ isFrozen, life }) => !isFrozen && life.killedAtMs === null);
  }

  /** SIGKILL, and another process in its place. */
  kill(member: Member): void {
    member.life.killedAtMs = Date.now();
    signalTo(member.life.pid, "SIGKILL");
    this.start();
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

  total(): Tally {
    const failed: Record<string, number> = {};
    let answered = 0;
    for (const tally of [...this.#gone, ...[...this.#members].map((member) => member.tally)]) {
      answered += tally.answered;
      for (const [name, count] of Object.entries(tally.failed)) failed[name] = (failed[name] ?? 0) + count;
    }
    return { answered, failed };
  }

  #hear(member: Member, message: FromWorker): void {
    if (message.kind === "tally") member.tally = message.tally;
    else if (message.kind === "trouble") this.troubles.push(`worker ${member.life.pid}: ${message.text}`);
    else {
      // One that came too late is asked for again under its id: the newest counts.
      for (const grant of message.grants)
        this.grants.set(grant.id, { ...grant, pid: member.life.pid, atMs: message.atMs });
    }
  }
}

function send(child: ChildProcess, message: ToWorker): void {
  // It may just have ended.
  if (child.connected) child.send(message, () => {});
}
