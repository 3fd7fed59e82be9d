import { type LedgerEntry, readLedger } from "../../src/testing/provider/ledger.js";
import type { Running } from "../cli-harness.js";
import type { Workspace } from "./workspace.js";

/** `polygateway mock` as a process of its own, with a ledger file. */
export interface MockProcess {
  readonly baseUrl: string;
  /** Ends it, and gives everything that arrived. */
  stop(): Promise<{ readonly ledger: LedgerEntry[]; readonly outcomes: Readonly<Record<string, number>> }>;
}

export async function startMock(workspace: Workspace, args: readonly string[]): Promise<MockProcess> {
  const ledgerPath = workspace.path("ledger.jsonl");
  const mock = workspace.start(["mock", "--port", "0", "--json", "--ledger", ledgerPath, ...args]);
  const { url } = JSON.parse(await firstLine(mock));
  return {
    baseUrl: url,
    async stop() {
      mock.child.kill("SIGINT");
      const { code, stdout, stderr } = await mock.finished;
      if (code !== 0) throw new Error(`mock ended with ${code}: ${stderr}`);
      const { outcomes } = JSON.parse(stdout.split("\n")[1] ?? "");
      return { ledger: await readLedger(ledgerPath), outcomes };
    },
  };
}

function firstLine({ child, finished }: Running): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    child.stdout?.on("data", (chunk) => {
      text += chunk;
      if (text.includes("\n")) resolve(text.slice(0, text.indexOf("\n")));
    });
    void finished.then(({ stderr }) => reject(new Error(`mock did not start: ${stderr}`)));
  });
}
