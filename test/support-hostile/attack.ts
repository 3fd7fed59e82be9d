import { expect } from "vitest";
import type { ChatRequest, GatewayOptions, SourceOptions } from "../../src/index.js";
import { attemptErrorOf, type Called, call, until, type Way } from "../support/calls.js";
import { caseClient, sourceOf } from "../support/case-client.js";
import { type RawRespond, type RawServer, startRawServer } from "./raw-server.js";

/** One call against a provider that misbehaves, and what must hold whatever it did. */

export const WAYS: readonly Way[] = ["chat", "stream"];
export const hi: ChatRequest = { messages: [{ role: "user", content: "hi" }] };

export interface Attack {
  readonly source?: Partial<SourceOptions>;
  readonly options?: Partial<GatewayOptions>;
  readonly request?: ChatRequest;
  /** Calls before the one that counts, so that a kept-alive socket exists. */
  readonly before?: number;
}

export interface Outcome extends Called {
  readonly server: RawServer;
  /** Outcome and final of each row. */
  readonly rows: readonly (readonly [string, boolean])[];
  readonly records: readonly { readonly error: string | null; readonly usageSource?: unknown }[];
}

/** Afterwards no permit, no waiter and no socket is left, and there is one row an attempt and one final one. */
export async function attack(way: Way, respond: RawRespond, attacked: Attack = {}): Promise<Outcome> {
  await using server = await startRawServer(respond);
  const { source = {}, options = {}, request = hi, before = 0 } = attacked;
  const sources = [sourceOf("s_1", server.baseUrl, source)];
  const { client, recorder } = caseClient(sources, { retry: { maxAttempts: 1 }, ...options });
  for (let index = 0; index < before; index += 1) await call(client, way, request);
  // The HTTP library gives a socket back one turn after its answer.
  if (before > 0) await new Promise((resolve) => setTimeout(resolve, 20));
  recorder.rows.length = 0;
  const sentBefore = server.requests.length;
  const called = await call(client, way, request);
  const { sources: states, leases, waiting } = await client.snapshot();
  expect(states.map(({ inflight }) => inflight)).toEqual([0]);
  expect([leases.live, waiting.count]).toEqual([0, 0]);
  await client.close();
  await until(() => server.sockets.open === 0);
  const rows = recorder.rows.map((row) => [row.outcome, row.final] as const);
  expect(rows.filter(([, final]) => final)).toHaveLength(1);
  const attempts = recorder.rows.filter((row) => row.sourceName !== null);
  expect(attempts.length).toBeGreaterThanOrEqual(server.requests.length - sentBefore);
  return { ...called, server, rows, records: recorder.rows };
}

/** The attempt's own error: its class, code and what its message says. */
export async function endsAs(
  way: Way,
  respond: RawRespond,
  expected: { readonly name?: string; readonly code: string; readonly says: RegExp },
  attacked: Attack = {},
): Promise<Outcome> {
  const outcome = await attack(way, respond, attacked);
  const error = attemptErrorOf(outcome);
  expect({ name: error.name, code: error.code }).toEqual({
    name: expected.name ?? "TransientError",
    code: expected.code,
  });
  expect(error.message).toMatch(expected.says);
  expect(error.message.startsWith("s_1 ")).toBe(true);
  return outcome;
}
