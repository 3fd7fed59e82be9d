import { beforeEach, describe, expect, it, vi } from "vitest";
import type { ProcessSettings } from "../config/env.js";
import { Secret } from "../domain/secret.js";
import { sqliteAvailable } from "../telemetry/sqlite.js";
import { batchDefaults, telemetryStores } from "./client.js";

vi.mock("../telemetry/sqlite.js", async (original) => ({
  ...(await original<typeof import("../telemetry/sqlite.js")>()),
  sqliteAvailable: vi.fn(),
}));

const settings = {
  telemetryBackends: undefined,
  sqlitePath: "./polygateway.db",
  jsonlPath: "./polygateway.jsonl",
  postgresDsn: undefined,
};
let notes: string[];
const note = (text: string): void => void notes.push(text);

beforeEach(() => {
  notes = [];
  vi.mocked(sqliteAvailable).mockReturnValue({ ok: true });
});

describe("telemetryStores", () => {
  it("is SQLite at ./polygateway.db unless the configuration says otherwise", () => {
    expect(telemetryStores(settings, undefined, note)).toEqual([{ kind: "sqlite", path: "./polygateway.db" }]);
    expect(telemetryStores({ ...settings, telemetryBackends: [] }, undefined, note)).toEqual([]);
    expect(telemetryStores({ ...settings, telemetryBackends: ["jsonl", "sqlite"] }, undefined, note)).toEqual([
      { kind: "jsonl", path: "./polygateway.jsonl" },
      { kind: "sqlite", path: "./polygateway.db" },
    ]);
    expect(notes).toEqual([]);
  });

  it("is the database of --db, whatever the configuration says", () => {
    expect(telemetryStores({ ...settings, telemetryBackends: [] }, "mine.db", note)).toEqual([
      { kind: "sqlite", path: "mine.db" },
    ]);
  });

  it("is PostgreSQL by its address, from the configuration or from --db", () => {
    const dsn = "postgres://me@db/calls";
    const configured = { ...settings, telemetryBackends: ["postgres"] as const, postgresDsn: new Secret(dsn) };
    expect(telemetryStores(configured, undefined, note)).toEqual([{ kind: "postgres", path: dsn }]);
    expect(telemetryStores(settings, dsn, note)).toEqual([{ kind: "postgres", path: dsn }]);
  });

  it("falls back to JSONL without a driver, and says in one line how to get SQLite", () => {
    vi.mocked(sqliteAvailable).mockReturnValue({ ok: false, reason: "none", remedy: "npm install better-sqlite3" });
    expect(telemetryStores(settings, undefined, note)).toEqual([{ kind: "jsonl", path: "./polygateway.jsonl" }]);
    expect(notes).toEqual([
      "No SQLite driver here: telemetry goes to ./polygateway.jsonl. For SQLite: npm install better-sqlite3",
    ]);
    expect(telemetryStores({ ...settings, telemetryBackends: ["sqlite", "jsonl"] }, undefined, note)).toHaveLength(1);
  });
});

describe("batchDefaults", () => {
  const options = { scope: "LLM", sources: [] };
  const process = { journal: undefined } as ProcessSettings;

  it("waits where a prompt would fail, journals before each send and commits before each line", () => {
    expect(batchDefaults(options, process)).toEqual({
      backpressure: { whenOpen: "wait", backendGraceMs: 60_000 },
      telemetryOptions: { journal: "before_send", durability: "sync" },
    });
  });

  it("leaves what the user has said, but for the durability that OUT relies on", () => {
    const given = {
      ...options,
      backpressure: { whenOpen: "fail" as const, stallWindowMs: 1_000 },
      telemetryOptions: { capture: "none" as const, durability: "async" as const },
    };
    expect(batchDefaults(given, { ...process, journal: "off" })).toEqual({
      backpressure: { whenOpen: "fail", backendGraceMs: 60_000, stallWindowMs: 1_000 },
      telemetryOptions: { capture: "none", journal: "off", durability: "sync" },
    });
  });
});
