import { describe, expect, it } from "vitest";
import {
  AllSourcesExhausted,
  CircuitOpenError,
  ConfigError,
  GatewayUnavailableError,
  GovernanceBackendError,
  PolyGatewayError,
  RequestRejectedError,
  ResultInvalidError,
  SourceDeadError,
  SourceNotConfiguredError,
  TransientError,
} from "../../errors.js";
import { failureOf } from "../result-line.js";
import { fromWire, toWire } from "./wire-error.js";

const unavailable = { scope: "LLM", reason: "retry_exhausted", retryAfterMs: 5 } as const;
const travel = (error: unknown): Error => fromWire(JSON.parse(JSON.stringify(toWire(error))));

describe("an error between two processes", () => {
  it.each<Error>([
    new PolyGatewayError("m", { code: "network" }),
    new TransientError("m", { code: "timeout", retryAfterMs: 3, rateLimited: true }),
    new SourceDeadError("m", { statusCode: 401, bodyText: "no such key" }),
    new RequestRejectedError("m", { statusCode: 400, bodyText: '{"error": "bad"}', details: { param: "n" } }),
    new ResultInvalidError("m", { issues: [{ path: ["a"], message: "wrong" }] }),
    new SourceNotConfiguredError("m"),
    new ConfigError([{ key: "K", problem: "is wrong", remedy: "Correct it." }]),
    new GatewayUnavailableError("m", unavailable),
    new CircuitOpenError("m", { scope: "LLM", retryAfterMs: 4 }),
    new AllSourcesExhausted("m", { ...unavailable, cause: new TransientError("503", { statusCode: 503 }) }),
    new GovernanceBackendError("m", { scope: "LLM" }),
    new TypeError("a defect"),
  ])("is the same: %s", (error) => {
    const arrived = travel(error);
    expect(arrived).toBeInstanceOf(error instanceof PolyGatewayError ? error.constructor : Error);
    expect(arrived.name).toBe(error.name);
    expect(arrived.message).toBe(error.message);
    expect({ ...arrived }).toMatchObject({ ...error });
    expect(failureOf(arrived)).toEqual(failureOf(error));
    expect(arrived.cause instanceof TransientError).toBe(error.cause instanceof TransientError);
  });

  it("leaves the texts of a model behind, and survives what JSON can't hold", () => {
    const invalid = new ResultInvalidError("m", { rawText: "x".repeat(1_000) });
    expect(JSON.stringify(toWire(invalid)).length).toBeLessThan(200);
    expect((travel(invalid) as ResultInvalidError).rawText).toBe("");
    const odd = new RequestRejectedError("m", { details: { count: 1n } });
    expect(travel(odd)).toBeInstanceOf(RequestRejectedError);
    expect(travel("a text")).toMatchObject({ name: "string", message: "a text" });
  });
});
