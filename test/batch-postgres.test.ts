import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { onConnection } from "./services/database.js";
import { type PostgresServer, startPostgres } from "./services/postgres.js";
import { sharedPostgres } from "./services/shared-postgres.js";
import { useProviderBench } from "./support-batch/provider-bench.js";
import { questionLines } from "./support-batch/questions.js";

/** A batch whose telemetry is in a PostgreSQL that goes away: what it says of its rows, and that it says each thing once. */

// Only to learn whether there is PostgreSQL at all: the one that is stopped here is this file's own.
describe.skipIf((await sharedPostgres()) === null)("a batch whose PostgreSQL goes away", () => {
  let server: PostgresServer;
  beforeAll(async () => {
    const started = await startPostgres();
    if (!started.ok) throw new Error(started.reason);
    server = started.server;
  });
  afterAll(() => server?.dispose());
  const bench = useProviderBench();

  /** Lines about telemetry that hold these words. */
  const told = (stderr: string, words: RegExp): string[] =>
    stderr.split("\n").filter((line) => line.includes("telemetry postgres:") && words.test(line));

  it("says once that rows wait and once that they are written again, with how many were lost", async () => {
    bench.workspace.write("in.jsonl", questionLines(120));
    bench.provider.change({ latency: { ttftMedianMs: 200 } });
    const run = bench.startBatch(["--db", server.url()]);
    await bench.arrived(8);
    await server.stop();
    await run.said("rows are kept and tried again");
    await server.start();
    await run.said("rows are written again");
    const { code, stdout, stderr } = await run.finished;
    expect(code, stderr).toBe(0);
    bench.expectAllAnswered(120);
    expect(told(stderr, /kept and tried again/), stderr).toHaveLength(1);
    expect(told(stderr, /rows are written again; none was lost/), stderr).toHaveLength(1);
    expect(told(stderr, /is lost|are lost/), stderr).toEqual([]);
    const id = /^Session: (\S+), for/m.exec(stdout)?.[1];
    const rows = await onConnection(server.url(), (client) =>
      client.query("SELECT DISTINCT parent_call_id FROM llm_calls WHERE session_id = $1", [id]),
    );
    expect(rows.rows).toHaveLength(120);
  });

  it("says once at the end how many rows are lost, and why", async () => {
    bench.workspace.write("in.jsonl", questionLines(6));
    const { code, stderr } = await bench.batch(["--db", "postgres://me:sesame-3391@127.0.0.1:1/calls"]);
    expect(code, stderr).toBe(0);
    expect(told(stderr, /\blost\b/), stderr).toHaveLength(1);
    expect(told(stderr, /\blost\b/)[0]).toMatch(/\d+ rows are lost: .*ECONNREFUSED/);
    expect(stderr).not.toContain("sesame");
  });

  it("names the session that report and trace take", async () => {
    bench.workspace.write("in.jsonl", questionLines(3));
    const { stdout } = await bench.batch(["--db", "calls.db"]);
    const id = /^Session: (\S+), for/m.exec(stdout)?.[1] ?? "";
    const report = await bench.run(["report", "--db", "calls.db", "--session", id, "--json"]);
    expect(JSON.parse(report.stdout).total.calls).toBe(3);
    const none = await bench.run(["report", "--db", "calls.db", "--session", "another", "--json"]);
    expect(JSON.parse(none.stdout).total.calls).toBe(0);
    const trace = await bench.run(["trace", id, "--db", "calls.db"]);
    expect(trace.code, trace.stderr).toBe(0);
    expect(trace.stdout).toContain(id);
  });
});
