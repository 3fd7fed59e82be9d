import { GatewayClient, PolyGatewayError } from "polygateway";
import { scenarioOf } from "../../../src/testing/simulation/scenarios.js";
import {
  MAX_OUTPUT_TOKENS,
  type PlannedCall,
  planWorkload,
  promptOf,
} from "../../../src/testing/simulation/workload.js";
import { type CallerPlan, type FromCaller, markedPrompt, type ToCaller } from "./messages.js";

/** One process of a scenario: the built package as a user has it, with callers that take the next call when theirs has ended. */

const tell = (message: FromCaller): void => void process.send?.(message);
let client: GatewayClient;
let calls: readonly PlannedCall[];
let callers = 0;
let active = 0;

function prepare(plan: CallerPlan): void {
  calls = planWorkload(scenarioOf(plan.scenario, plan.seed), plan.seed).calls;
  client = new GatewayClient(plan.options);
  ({ callers } = plan);
  tell({ kind: "ready" });
}

async function make(caller: number, call: PlannedCall): Promise<void> {
  let failure: string | null = null;
  try {
    await client.chat({
      messages: [{ role: "user", content: markedPrompt(call.index, promptOf(call)) }],
      sampling: { maxTokens: MAX_OUTPUT_TOKENS },
      priority: call.priority,
    });
  } catch (error) {
    failure = PolyGatewayError.isInstance(error) ? error.code : String(error);
  }
  tell({ kind: "ended", index: call.index, failure });
  tell({ kind: "take", caller });
}

async function finish(): Promise<void> {
  active -= 1;
  if (active > 0) return;
  await client.close();
  process.disconnect?.();
}

process.on("disconnect", () => active > 0 && process.exit(1));
process.on("message", (message: ToCaller) => {
  if (message.kind === "plan") prepare(message.plan);
  else if (message.kind === "go") {
    active = callers;
    for (let caller = 0; caller < callers; caller += 1) tell({ kind: "take", caller });
  } else if (message.index === null) void finish();
  else void make(message.caller, calls[message.index]!);
});
