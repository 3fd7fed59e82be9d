import { describe, expect, it } from "vitest";
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

  it("lets no escape sequence of a provider reach the terminal", () => {
    expect(describeFailure(new RequestRejectedError("bad \u001b[2J body")).text).not.toContain("\u001b");
  });
});
