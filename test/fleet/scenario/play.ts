import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { usedCapacity } from "../../../src/testing/simulation/metrics.js";
import { runScenario } from "../../../src/testing/simulation/run.js";
import { scenarioOf } from "../../../src/testing/simulation/scenarios.js";
import { planWorkload } from "../../../src/testing/simulation/workload.js";
import { type RedisServer, startRedis } from "../../services/redis.js";
import type {
  CallerPlan,
  FromCaller,
  FromProvider,
  ScenarioPlan,
  SeenAttempt,
  ToCaller,
  ToProvider,
} from "./messages.js";
import { scaledOptions } from "./options.js";
import type { RealResult } from "./report.js";

const CALLER = new URL("./fleet-caller.js", import.meta.url);
const PROVIDER = new URL("./fleet-provider.js", import.meta.url);

/** Plays the scenario twice: on virtual time, and with processes, Redis and HTTP. */
export async function playScenario(plan: ScenarioPlan, log: (text: string) => void): Promise<RealResult> {
  const scenario = scenarioOf(plan.scenario, plan.seed);
  log(`simulating scenario ${plan.scenario}, seed ${plan.seed}`);
  const simulated = (await runScenario(scenario, { seed: plan.seed })).metrics;
  const expectedS = simulated.makespanMs / 1_000 / plan.scale;
  log(
    `${scenario.callers.length} processes on real time, ${plan.scale} times as fast: about ${expectedS.toFixed(0)} s`,
  );
  const redis = await startRedis();
  const provider = fork(PROVIDER);
  const children: ChildProcess[] = [provider];
  try {
    tell(provider, { kind: "plan", plan });
    const { port } = await heard(provider, "ready");
    const options = scaledOptions(scenario, plan.scale, redis.url, `http://127.0.0.1:${port}`);
    const workers = scenario.callers.map((callers) => startWorker({ ...plan, callers, options }));
    children.push(...workers);
    await Promise.all(workers.map((worker) => once(worker, "message")));
    const cpuBefore = await redisCpuS(redis);
    tell(provider, { kind: "go" });
    const { makespanMs, failures } = await callAll(workers, scenario.calls);
    const scripts = await scriptsOf(redis);
    const redisCpuShare = ((await redisCpuS(redis)) - cpuBefore) / (makespanMs / 1_000);
    tell(provider, { kind: "report" });
    const { attempts } = await heard(provider, "report");
    return {
      plan,
      simulated,
      real: measured(plan, attempts, makespanMs * plan.scale),
      failures,
      scriptsPerCall: scripts / scenario.calls,
      redisCpuShare,
    };
  } finally {
    for (const child of children) child.kill("SIGKILL");
    await redis.stop();
  }
}

function startWorker(plan: CallerPlan): ChildProcess {
  const worker = fork(CALLER);
  const message: ToCaller = { kind: "plan", plan };
  worker.send(message);
  return worker;
}

/** One pool for all callers; resolves when every call has ended. */
function callAll(
  workers: readonly ChildProcess[],
  calls: number,
): Promise<{ makespanMs: number; failures: Record<string, number> }> {
  const failures: Record<string, number> = {};
  const beganMs = performance.now();
  let next = 0;
  let ended = 0;
  return new Promise((resolve, reject) => {
    for (const worker of workers) {
      const say = (message: ToCaller): void => void (worker.connected && worker.send(message));
      worker.on("exit", (code) => {
        if (code !== 0) reject(new Error(`a process ended with code ${code}`));
      });
      worker.on("message", (message: FromCaller) => {
        if (message.kind === "take") {
          const index = next < calls ? next : null;
          next += 1;
          say({ kind: "call", caller: message.caller, index });
        } else if (message.kind === "ended") {
          ended += 1;
          if (message.failure !== null) failures[message.failure] = (failures[message.failure] ?? 0) + 1;
          if (ended === calls) resolve({ makespanMs: performance.now() - beganMs, failures });
        }
      });
      say({ kind: "go" });
    }
  });
}

function measured({ scenario: id, seed }: ScenarioPlan, attempts: readonly SeenAttempt[], makespanMs: number) {
  const scenario = scenarioOf(id, seed);
  const limited = attempts.filter(({ outcome }) => outcome === "rate_limited").length;
  const useful = attempts.filter(({ outcome }) => outcome === "success").length;
  return {
    capacity: usedCapacity({ attempts, scenario, workload: planWorkload(scenario, seed) }),
    makespanMs,
    attempts: attempts.length,
    limited,
    wastedShare: (attempts.length - useful) / attempts.length,
  };
}

async function heard<K extends FromProvider["kind"]>(
  child: ChildProcess,
  kind: K,
): Promise<Extract<FromProvider, { kind: K }>> {
  const [message] = (await once(child, "message")) as [FromProvider];
  if (message.kind !== kind) throw new Error(`the provider said ${message.kind}, not ${kind}`);
  return message as Extract<FromProvider, { kind: K }>;
}

function tell(child: ChildProcess, message: ToProvider): void {
  child.send(message);
}

async function redisCpuS(redis: RedisServer): Promise<number> {
  const told = String(await redis.command("INFO", "cpu"));
  const of = (name: string): number => Number(new RegExp(`${name}:([\\d.]+)`).exec(told)?.[1] ?? 0);
  return of("used_cpu_sys") + of("used_cpu_user");
}

async function scriptsOf(redis: RedisServer): Promise<number> {
  const told = String(await redis.command("INFO", "commandstats"));
  return Number(/cmdstat_evalsha:calls=(\d+)/.exec(told)?.[1] ?? 0);
}
