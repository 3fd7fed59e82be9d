import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Running } from "./cli-harness.js";
import { type RedisServer, sharedRedis, startRedis } from "./services/redis.js";
import { sharedPostgres } from "./services/shared-postgres.js";
import { summaryOf, useProviderBench } from "./support-batch/provider-bench.js";
import { questionLines } from "./support-batch/questions.js";

/** A batch whose limits are in a Redis that is away, or refuses: told at once, ended when asked, gone on with later. */

const PASSWORD = "sesame-7281";

const postgres = await sharedPostgres();

describe.skipIf((await sharedRedis()) === null)("a batch without its Redis", () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis({ config: { requirepass: PASSWORD }, password: PASSWORD });
  });
  beforeEach(() => redis.flush());
  afterAll(() => redis?.stop());
  const bench = useProviderBench();

  function startBatch(
    args: readonly string[],
    url = `redis://:${PASSWORD}@127.0.0.1:${redis.port}`,
    told = "--json",
  ): Running {
    const shared = { REDIS_URL: url, PGW_LIMITER_BACKEND: "redis", PGW_BREAKER_BACKEND: "redis" };
    const command = ["batch", "in.jsonl", "-o", "out.jsonl", told, ...args];
    return bench.workspace.start(command, { ...bench.env, ...shared });
  }

  const postgresAsRedis = (): string => `redis://:${PASSWORD}@127.0.0.1:${new URL(postgres!.url("postgres")).port}`;

  /** Nobody listens there. */
  const AWAY = "redis://127.0.0.1:1";

  for (const workers of [[], ["--workers", "2"]]) {
    describe(workers.length === 0 ? "in one process" : "with workers", () => {
      it("gives up when it was told to, with what Redis said, however long calls could wait", async () => {
        bench.workspace.write("in.jsonl", questionLines(6));
        const ended = await startBatch([...workers, "--give-up-after", "2s"], AWAY).finished;
        expect(ended.code, ended.stderr).toBe(3);
        const { stop, left, failed, elapsedMs } = summaryOf(ended);
        expect(stop).toMatchObject({
          kind: "no_success",
          reason: expect.stringMatching(/for 2 s\..*Redis.*ECONNREFUSED/),
        });
        expect({ left, failed }).toEqual({ left: 6, failed: 0 });
        // The grace of a batch is a minute.
        expect(elapsedMs).toBeLessThan(30_000);
      });

      it("says in words that Redis is away, what became of the lines and what to do", async () => {
        bench.workspace.write("in.jsonl", questionLines(6));
        const ended = await startBatch([...workers, "--give-up-after", "2s"], AWAY, "--quiet").finished;
        expect(ended.code, ended.stderr).toBe(3);
        expect(ended.stderr).toMatch(/Redis at redis:\/\/127\.0\.0\.1:1 can't be reached/);
        expect(ended.stderr).toContain("Run the same command again to do the 6 lines left; none is lost.");
        expect(ended.stderr).toContain("`polygateway check`");
        expect(ended.stderr).not.toMatch(/check --live|snapshot failed|tick failed/);
      });

      it("ends with the first Ctrl-C, since nothing was sent, and does the lines when Redis is back", async () => {
        bench.workspace.write("in.jsonl", questionLines(6));
        const run = startBatch(workers, AWAY);
        await run.said("the limits can't be asked");
        run.child.kill("SIGINT");
        const stopped = await run.finished;
        expect(stopped.code, stopped.stderr).toBe(3);
        expect(summaryOf(stopped)).toMatchObject({ stop: { kind: "drained" }, left: 6, failed: 0 });
        expect(summaryOf(stopped).stop.reason).toBe("Stopped; no call was in flight.");
        expect(stopped.stderr).toContain("Stopping: no call is in flight.");
        expect(stopped.stderr).not.toContain("calls in flight are finishing");
        const again = await startBatch(workers).finished;
        expect(again.code, again.stderr).toBe(0);
        bench.expectAllAnswered(6);
      });

      it.each<readonly [string, () => string, RegExp]>([
        [
          "a wrong password",
          () => `redis://:wrong@127.0.0.1:${redis.port}`,
          /WRONGPASS.*correct the user and password/,
        ],
        ["no password", () => redis.url, /NOAUTH.*correct the user and password/],
        [
          "a database that isn't there",
          () => `redis://:${PASSWORD}@127.0.0.1:${redis.port}/99`,
          /give a database number/,
        ],
        [
          "a web server",
          () => `redis://:${PASSWORD}@127.0.0.1:${new URL(bench.provider.baseUrl).port}`,
          /no Redis answers at redis:\/\/127\.0\.0\.1:\d+: what answers there speaks another protocol/,
        ],
        ...(postgres === null
          ? []
          : [["PostgreSQL", postgresAsRedis, /no Redis answers at .*: PostgreSQL answers there/] as const]),
      ])("is told of %s at once", async (_, url, words) => {
        bench.workspace.write("in.jsonl", questionLines(6));
        const ended = await startBatch(workers, url()).finished;
        expect(ended.code, ended.stderr).toBe(1);
        const { stop, left, failed, elapsedMs } = summaryOf(ended);
        expect(stop).toMatchObject({ kind: "misconfigured", reason: expect.stringMatching(words) });
        expect({ left, failed }).toEqual({ left: 6, failed: 0 });
        expect(elapsedMs).toBeLessThan(30_000);
        expect(ended.stdout + ended.stderr).not.toContain(PASSWORD);
        // Of what no waiting mends nobody is told to wait.
        expect(ended.stderr).not.toContain("calls wait");
      });

      it("tells why it stopped, though it is to be quiet", async () => {
        bench.workspace.write("in.jsonl", questionLines(6));
        const ended = await startBatch(workers, `redis://:wrong@127.0.0.1:${redis.port}`, "--quiet").finished;
        expect(ended.code, ended.stderr).toBe(1);
        expect(ended.stderr).toMatch(/WRONGPASS.*correct the user and password/);
      });

      it("says once that Redis is away and once that it is back", async () => {
        bench.workspace.write("in.jsonl", questionLines(40));
        bench.provider.change({ latency: { ttftMedianMs: 100 } });
        const run = startBatch(workers);
        await bench.arrived(8);
        await redis.kill();
        await run.said("the limits can't be asked");
        await redis.start();
        await run.said("the limits can be asked again");
        const ended = await run.finished;
        expect(ended.code, ended.stderr).toBe(0);
        bench.expectAllAnswered(40);
        expect(ended.stderr.match(/can't be asked/g)).toHaveLength(1);
        expect(ended.stderr.match(/can be asked again/g)).toHaveLength(1);
      });
    });
  }
});
