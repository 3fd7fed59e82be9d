import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Command } from "commander";
import type { CommandContext } from "./context.js";
import type { Check } from "./demo-verdict.js";
import { EXIT } from "./failure.js";
import { packageRoot } from "./package-root.js";
import { type Style, styleOf, type Terminal } from "./terminal.js";

interface DemoFlags {
  keep?: boolean;
}

const EXAMPLES = `
Starts four providers on loopback (one healthy, one with a tight limit, one that hangs, one whose key is dead), sends
200 questions through them with the real batch engine, and proves what came of it: the providers keep ledgers of
their own. Nothing leaves this machine, and nothing stays on it.

Examples:
  polygateway demo
  polygateway demo --keep      leave results and telemetry there to look at

Exit codes: 0 every promise held · 1 could not run · 2 a promise was broken · 130 stopped.`;

function verdictLines(checks: readonly Check[], style: Style): string[] {
  const lines = checks.map(({ ok, promise, found }) => {
    const mark = ok ? style.green("✓") : style.red("✗");
    return `${mark} ${promise}\n    ${ok ? style.dim(found) : style.red(found)}`;
  });
  const broken = checks.filter(({ ok }) => !ok).length;
  const verdict =
    broken === 0 ? style.green("Every promise held.") : style.red(`${broken} of ${checks.length} promises broken.`);
  return [style.bold("Verdict"), ...lines, "", verdict];
}

async function demo(flags: DemoFlags, terminal: Terminal): Promise<number> {
  const { runDemo } = await import("./demo-run.js");
  const style = styleOf(terminal.stdout, terminal.env);
  const questions = readFileSync(join(packageRoot(), "assets", "demo-questions.jsonl"), "utf8");
  const folder = mkdtempSync(join(tmpdir(), "polygateway-demo-"));
  try {
    const checks = await runDemo({ folder, questions, terminal });
    if (checks === undefined) return EXIT.interrupted;
    terminal.stdout.write(`\n${verdictLines(checks, style).join("\n")}\n`);
    return checks.every(({ ok }) => ok) ? EXIT.ok : EXIT.someFailed;
  } finally {
    if (flags.keep) terminal.stdout.write(`Results and telemetry are in ${folder}\n`);
    else rmSync(folder, { recursive: true, force: true });
  }
}

export function registerDemo(program: Command, context: CommandContext): void {
  program
    .command("demo")
    .summary("a governed batch over simulated sources; no keys, no servers")
    .description("See a governed batch run over four simulated sources, and the proof of what it promises.")
    .option("--keep", "keep the results and the telemetry")
    .addHelpText("after", EXAMPLES)
    .action(async (flags: DemoFlags) => {
      context.exitCode = await demo(flags, context.terminal);
    });
}
