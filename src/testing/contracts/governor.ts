import { type ContractTest, type GovernorBackend, GovernorBench, type GovernorSetup } from "./governor/bench.js";
import { openTests } from "./governor/breaker-open.js";
import { tripTests } from "./governor/breaker-trips.js";
import { cooldownTests } from "./governor/cooldown.js";
import { gateTests } from "./governor/gates.js";
import { leaseTests } from "./governor/leases.js";
import { lostReplyTests } from "./governor/lost-replies.js";
import { observationTests } from "./governor/observation.js";
import { probeTests } from "./governor/probes.js";
import { rateTests } from "./governor/rates.js";
import { fairnessTests } from "./governor/scheduling-fairness.js";
import { isolationTests } from "./governor/scheduling-isolation.js";
import { orderTests } from "./governor/scheduling-order.js";
import { paceTests } from "./governor/scheduling-pace.js";
import { selectionTests } from "./governor/selection.js";
import { wantTests } from "./governor/wants.js";

export type { GovernorBackend, GovernorSetup } from "./governor/bench.js";

const TESTS: readonly ContractTest[] = [
  ...gateTests,
  ...wantTests,
  ...rateTests,
  ...leaseTests,
  ...lostReplyTests,
  ...tripTests,
  ...openTests,
  ...probeTests,
  ...cooldownTests,
  ...selectionTests,
  ...observationTests,
  ...paceTests,
  ...isolationTests,
  ...orderTests,
  ...fairnessTests,
];

export interface GovernorContractOptions {
  /** The runner's own function; nothing else of a runner is needed. */
  readonly test: (name: string, body: () => Promise<void>) => void;
  /** Called one or more times a test; each call gets a scope of its own. */
  readonly makeBackend: (setup: GovernorSetup) => Promise<GovernorBackend>;
  /** Tests this implementation can't pass, each with the reason; the reason shows in the test's name. */
  readonly skip?: readonly { readonly test: string; readonly reason: string }[];
}

let scopes = 0;

async function runOne(test: ContractTest, makeBackend: GovernorContractOptions["makeBackend"]): Promise<void> {
  const opened: GovernorBench[] = [];
  try {
    await test.body(async (setup) => {
      const bench = new GovernorBench(await makeBackend({ scope: `contract-${++scopes}`, ...setup }));
      opened.push(bench);
      return bench;
    });
  } finally {
    for (const bench of opened) await bench.close();
  }
}

/**
 * What every governor must do, stated from spec 02 §§3–4 and 10 "One port", tested through `tick` alone.
 * The bodies are the same for every implementation; only the clock and the storage differ.
 *
 * @throws Error when `skip` names a test that doesn't exist.
 */
export function governorContract({ test, makeBackend, skip = [] }: GovernorContractOptions): void {
  for (const { test: name } of skip) {
    if (!TESTS.some((known) => known.name === name)) throw new Error(`skip names no test of the suite: ${name}`);
  }
  for (const contractTest of TESTS) {
    const skipped = skip.find((entry) => entry.test === contractTest.name);
    if (skipped) test(`${contractTest.name} [skipped: ${skipped.reason}]`, async () => {});
    else test(contractTest.name, () => runOne(contractTest, makeBackend));
  }
}
