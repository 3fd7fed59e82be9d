import type { Command } from "commander";
import { inspectScope } from "../config/resolve.js";
import { ConfigError, type ConfigProblem } from "../errors.js";
import type { PostgresHealth } from "../telemetry/postgres-care.js";
import { PricingTable } from "../telemetry/pricing.js";
import { sqliteAvailable } from "../telemetry/sqlite.js";
import { profileFor, profiles } from "../transports/openai/profiles.js";
import { CONFIG_OPTION, ENV_OPTION } from "./arguments.js";
import type { LiveAnswer } from "./check-live.js";
import { checkPostgres, postgresLines } from "./check-postgres.js";
import { type CheckedRedis, checkRedis, redisLines } from "./check-redis.js";
import type { CheckedScope, CheckReport } from "./check-report.js";
import { configurationLines, liveLines, noteLines, problemLines } from "./check-view.js";
import { openConfiguration } from "./configuration.js";
import type { CommandContext } from "./context.js";
import { CliError, EXIT } from "./failure.js";
import { plural } from "./format.js";
import { DEFAULT_SCOPE } from "./scope.js";
import { processTerminal, styleOf, type Terminal } from "./terminal.js";

interface CheckFlags {
  readonly scope?: string;
  readonly config?: string;
  readonly env?: string;
  readonly json?: boolean;
  readonly live?: boolean;
}

const EXAMPLES = `
Examples:
  polygateway check                     every scope of ./polygateway.yaml, else of the environment and .env
  polygateway check --scope LLM --live  also asks each source one tiny question
  polygateway check --config prod.yaml --env prod.env --json

Exit code 1 when anything is wrong, when PostgreSQL takes no telemetry, when Redis is needed and can't be used, or when
a source doesn't answer with --live.`;

/** `check`: the whole configuration at once, secrets masked (spec 08). */
export function registerCheck(
  program: Command,
  context: CommandContext = { terminal: processTerminal, exitCode: EXIT.ok },
): void {
  program
    .command("check")
    .summary("validate the configuration and show what is in force")
    .description("Validates the whole configuration at once and shows sources, limits and what they mean.")
    .option("--scope <name>", "check this scope only (default: all that are configured)")
    .option(...CONFIG_OPTION)
    .option(...ENV_OPTION)
    .option("--live", "ask each source one tiny question and say what answered")
    .option("--json", "print one JSON object instead of text")
    .addHelpText("after", EXAMPLES)
    .action((flags: CheckFlags) => runCheck(flags, context.terminal));
}

async function runCheck(flags: CheckFlags, terminal: Terminal): Promise<void> {
  const report = inspectAll(flags, terminal);
  const style = styleOf(terminal.stdout, terminal.env);
  const write = (lines: readonly string[]): void => {
    if (!flags.json && lines.length > 0) terminal.stdout.write(`${lines.join("\n")}\n`);
  };
  write(configurationLines(report, style));
  write(noteLines(report.notes, style));
  write(problemLines(report.problems, style));
  const postgres = await checkPostgres(report);
  write(postgresLines(postgres, style));
  const redis = await checkRedis(report);
  write(redisLines(redis, style));
  const answers = flags.live && report.problems.length === 0 ? await askAll(report, terminal) : undefined;
  if (answers) write(liveLines(answers, style));
  if (flags.json) terminal.stdout.write(`${JSON.stringify(asJson(report, answers, postgres, redis), null, 2)}\n`);
  const silent = [...(answers?.values() ?? [])].flat().filter(({ ok }) => !ok);
  if (report.problems.length > 0) throw new CliError(summary(report.problems.length, flags.live === true));
  if (silent.length > 0) throw new CliError(`No usable answer from ${silent.map(({ source }) => source).join(", ")}.`);
  if (postgres?.ok === false) throw new CliError(`Telemetry in ${postgres.place} is not in order: see above.`);
  if (isMissed(redis)) throw new CliError(`Redis at ${redis?.address} can't be used: see above.`);
  if (!flags.json) terminal.stdout.write(`${style.green("The configuration is good.")}\n`);
}

/** A Redis that nothing uses may be in whatever state. */
function isMissed(redis: CheckedRedis | null): boolean {
  return redis !== null && !redis.ok && redis.usedFor.length > 0;
}

function summary(problems: number, live: boolean): string {
  const asked = live ? " No source was asked." : "";
  return `${plural(problems, "problem")} to correct.${asked}`;
}

function inspectAll(flags: CheckFlags, terminal: Terminal): CheckReport {
  const { scopes: found, file, dotenvPath, inspect } = openConfiguration(flags, terminal.env);
  const names = flags.scope !== undefined ? [flags.scope] : found.length > 0 ? found : [DEFAULT_SCOPE];
  const context = { profiles, profileFor };
  const scopes = names.map((name): CheckedScope => {
    const inspection = inspect(name, "any");
    const scope = inspectScope(inspection.options, { ...context, client: inspection.client });
    const { config, cache, embedding } = scope;
    return { inspection, config, cache, embedding };
  });
  const pricing = pricingProblems(scopes[0]?.inspection.process.pricingPath);
  return {
    configFile: file?.path ?? null,
    envFile: dotenvPath ?? null,
    nodeVersion: process.version,
    sqlite: sqliteAvailable(),
    scopes,
    problems: distinct([...scopes.flatMap(({ inspection }) => inspection.problems), ...pricing]),
    notes: distinct(scopes.flatMap(({ inspection }) => inspection.notes)),
  };
}

/** Process-wide findings come with every scope, but are told once. */
function distinct<T extends object>(findings: readonly T[]): T[] {
  return [...new Map(findings.map((finding) => [JSON.stringify(finding), finding])).values()];
}

function pricingProblems(path: string | undefined): readonly ConfigProblem[] {
  if (path === undefined) return [];
  try {
    PricingTable.fromFile(path);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}

async function askAll({ scopes }: CheckReport, terminal: Terminal): Promise<ReadonlyMap<string, LiveAnswer[]>> {
  // Loaded only now: a check without --live needs no HTTP.
  const { askSources } = await import("./check-live.js");
  const stop = new AbortController();
  const release = terminal.onInterrupt(() => stop.abort(new CliError("Interrupted.", EXIT.interrupted)));
  try {
    const answers = new Map<string, LiveAnswer[]>();
    for (const { inspection, config } of scopes) {
      answers.set(config.scope, await askSources(inspection, config, stop.signal));
    }
    return answers;
  } finally {
    release();
  }
}

function asJson(
  report: CheckReport,
  answers: ReadonlyMap<string, LiveAnswer[]> | undefined,
  postgres: PostgresHealth | null,
  redis: CheckedRedis | null,
): Record<string, unknown> {
  const { scopes, ...rest } = report;
  return {
    ok:
      report.problems.length === 0 &&
      postgres?.ok !== false &&
      !isMissed(redis) &&
      [...(answers?.values() ?? [])].flat().every(({ ok }) => ok),
    ...rest,
    postgres,
    redis,
    process: scopes[0]?.inspection.process ?? null,
    scopes: scopes.map(({ config, cache, embedding }) => ({
      ...config,
      embedding,
      cache: embedding === null ? withoutSalt(cache) : null,
      // A RegExp has no JSON form of its own; the masked key comes from Secret itself.
      sources: config.sources.map((source) => ({
        ...source,
        profile: source.profile.name,
        transient400: String(source.transient400),
        headers: Object.keys(source.headers),
      })),
      live: answers?.get(config.scope) ?? null,
    })),
  };
}

/** The salt is a secret, and a store of the user's own is no setting. */
function withoutSalt({ salt: _, store: __, ...settings }: CheckedScope["cache"]): object {
  return settings;
}
