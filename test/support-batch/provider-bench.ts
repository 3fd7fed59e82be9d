import { afterEach, beforeEach, expect } from "vitest";
import { echoAnswer } from "../../src/testing/provider/answer.js";
import { type SimulatedProvider, startSimulatedProvider } from "../../src/testing/provider/server.js";
import { type Finished, type Running, sourceEnv } from "../cli-harness.js";
import { answersById, type OutLine, readOut } from "./out-file.js";
import { idsOf } from "./questions.js";
import { openWorkspace, type Workspace } from "./workspace.js";

const IN_FLIGHT = "4";

/** A fresh folder and a fresh provider for each test, and the built command between them. */
export interface ProviderBench {
  readonly workspace: Workspace;
  readonly provider: SimulatedProvider;
  /** One source, four calls in flight. */
  readonly env: Record<string, string>;
  run(args: readonly string[], input?: string): Promise<Finished>;
  /** `batch in.jsonl -o out.jsonl` with these further arguments. */
  batch(args?: readonly string[]): Promise<Finished>;
  startBatch(args?: readonly string[]): Running;
  out(): OutLine[];
  /** OUT answers question 1 … count once each, rightly, and nothing else. */
  expectAllAnswered(count: number): void;
  /** Resolves once so many requests arrived. */
  arrived(count: number): Promise<void>;
  /** Answers in progress break off as in an outage, and everything after them is answered at once. */
  releaseAnswers(): Promise<void>;
}

export function useProviderBench(): ProviderBench {
  let workspace: Workspace;
  let provider: SimulatedProvider;
  let env: Record<string, string>;

  beforeEach(async () => {
    workspace = openWorkspace();
    provider = await startSimulatedProvider();
    env = sourceEnv(provider.baseUrl, { MAX_CONCURRENCY: IN_FLIGHT });
  });

  afterEach(async () => {
    await workspace.close();
    await provider.stop();
  });

  const bench: ProviderBench = {
    get workspace() {
      return workspace;
    },
    get provider() {
      return provider;
    },
    get env() {
      return env;
    },
    run: (args, input) => workspace.run(args, env, input),
    batch: (args) => bench.startBatch(args).finished,
    startBatch: (args = []) => workspace.start(["batch", "in.jsonl", "-o", "out.jsonl", ...args], env),
    out: () => readOut(workspace.path("out.jsonl")),
    expectAllAnswered(count) {
      const right = idsOf(count).map((id, index) => [id, echoAnswer(`question ${index + 1}`)] as const);
      expect(answersById(bench.out())).toEqual(new Map(right));
    },
    async arrived(count) {
      while (provider.stats().arrived < count) await new Promise((resolve) => setTimeout(resolve, 10));
    },
    async releaseAnswers() {
      provider.change({ latency: {} });
      await provider.setOutage("refuse");
      await provider.setOutage("off");
    },
  };
  return bench;
}

export const summaryOf = ({ stdout }: Finished) => JSON.parse(stdout);

/** Exit 1 with these words, no stack trace, and nothing on stdout. */
export function expectExit1({ code, stderr, stdout }: Finished, ...words: (string | RegExp)[]): void {
  expect({ code, stdout }, stderr).toEqual({ code: 1, stdout: "" });
  for (const word of words) expect(stderr).toMatch(word);
  expect(stderr).not.toMatch(/\n\s+at /);
}
