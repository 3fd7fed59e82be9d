import { describe, expect, it } from "vitest";
import { classifyRedisError, governanceError } from "../backends/redis/failure.js";
import {
  AllSourcesExhausted,
  ConfigError,
  GovernanceBackendError,
  RequestRejectedError,
  ResultInvalidError,
  SourceDeadError,
  SourceNotConfiguredError,
} from "../errors.js";
import { CliError, describeFailure, EXIT } from "./failure.js";

describe("describeFailure", () => {
  it("names reason, sources and what to do when no source could answer", () => {
    const failure = describeFailure(
      new AllSourcesExhausted("nothing left", {
        scope: "LLM",
        reason: "all_sources_dead",
        retryAfterMs: 60_000,
        perSourceReasons: {
          qwen_1: {
            reason: "dead",
            waitMs: 60_000,
            lastError: { code: "auth", message: "qwen_1 credential rejected: 401" },
          },
        },
        cause: new SourceDeadError("qwen_1 credential rejected or unpaid: 401 | no such key"),
      }),
    );
    expect(failure.exitCode).toBe(EXIT.gaveUp);
    expect(failure.text).toContain("No source is usable");
    expect(failure.text).toContain("401 | no such key");
    expect(failure.text).toContain("qwen_1: dead, next try in 1m 00s: qwen_1 credential rejected: 401");
    expect(failure.text).toContain("polygateway check --live");
  });

  it.each([
    [
      "a configuration",
      new ConfigError([{ key: "LLM__A__1__MODEL", problem: "is missing", remedy: "Set it." }]),
      EXIT.couldNotRun,
      "LLM__A__1__MODEL",
    ],
    [
      "a rejection",
      new RequestRejectedError("a_1 request rejected: 400 | bad", { code: "bad_request" }),
      EXIT.someFailed,
      "change it",
    ],
    [
      "a prompt that is too long",
      new RequestRejectedError("too long", { code: "context_length" }),
      EXIT.someFailed,
      "Shorten the prompt",
    ],
    [
      "filtered content",
      new RequestRejectedError("no", { code: "content_filtered" }),
      EXIT.someFailed,
      "word it differently",
    ],
    ["an unusable answer", new ResultInvalidError("no JSON"), EXIT.someFailed, "can't be used"],
    ["a wrong source name", new SourceNotConfiguredError("source x is not known"), EXIT.couldNotRun, "source x"],
    ["a dead backend", new GovernanceBackendError("tick failed", { scope: "LLM" }), EXIT.gaveUp, "tick failed"],
    ["the command's own failure", new CliError("Do it differently.", 7), 7, "Do it differently."],
    [
      "a missing file",
      Object.assign(new Error("ENOENT: …"), { code: "ENOENT", path: "x.jsonl" }),
      EXIT.couldNotRun,
      "x.jsonl: no such file",
    ],
    ["a surprise", new TypeError("x is undefined"), EXIT.couldNotRun, "PGW_DEBUG=1"],
    ["something that is no error", "boom", EXIT.couldNotRun, "boom"],
  ])("%s has an exit code and a next step", (_, error, exitCode, words) => {
    const failure = describeFailure(error);
    expect(failure.exitCode).toBe(exitCode);
    expect(failure.text).toContain(words);
    expect(failure.text).not.toMatch(/\n\s+at /);
  });

  it.each([
    [
      "OOM command not allowed when used memory > 'maxmemory'. script: abc123, on @user_script:1.",
      "maxmemory: raise it",
    ],
    ["WRONGPASS invalid username-password pair or user is disabled.", "correct the user and password"],
    ["NOAUTH Authentication required.", "correct the user and password"],
    ["NOPERM this user has no permissions to run the 'evalsha' command", "the Redis user lacks a right"],
    ["READONLY You can't write against a read only replica.", "give the primary's"],
    ["LOADING Redis is loading the dataset in memory", "wait until it has"],
  ])("%s: says what to do, not to start what answers", (said, words) => {
    const failure = classifyRedisError(Object.assign(new Error(said), { name: "ReplyError" }));
    const { text } = describeFailure(governanceError("LLM", "redis://127.0.0.1:6379", failure));
    expect(text).toContain(words);
    expect(text).toContain("Mend that, then repeat the command");
    expect(text).not.toMatch(/start it|user_script/i);
  });

  it("names no time for a new try where waiting mends nothing, and ends as what could not run", () => {
    const failure = classifyRedisError(
      Object.assign(new Error("NOAUTH Authentication required."), { name: "ReplyError" }),
    );
    const { text, exitCode } = describeFailure(governanceError("LLM", "redis://127.0.0.1:6379", failure));
    expect(text).not.toContain("A new try");
    expect(exitCode).toBe(EXIT.couldNotRun);
  });

  it("tells to start a Redis that does not answer", () => {
    const failure = classifyRedisError(Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" }));
    expect(describeFailure(governanceError("LLM", "redis://127.0.0.1:6379", failure)).text).toContain(
      "Start it, or correct its address",
    );
  });

  it("lets no escape sequence of a provider reach the terminal", () => {
    expect(describeFailure(new RequestRejectedError("bad \u001b[2J body")).text).not.toContain("\u001b");
  });
});
