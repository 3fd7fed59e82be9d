import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { isRefusal } from "../../src/testing/contracts/governor/bench.js";
import { eventually } from "../services/processes.js";
import { sharedRedis, startRedis } from "../services/redis.js";
import { Fleet } from "./fleet.js";

/**
 * F42 on a server whose own clock jumps: TIME and the life of keys together, which the clock that tests hand to the script
 * can't show. A shim before the C library moves it by what stands in a file; without a C compiler there is none.
 */
const SHIM = `
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>
int gettimeofday(struct timeval *tv, void *tz) {
  static int (*real)(struct timeval *, void *);
  if (!real) real = dlsym(RTLD_NEXT, "gettimeofday");
  int result = real(tv, tz);
  char text[32] = {0};
  int file = open(getenv("CLOCK_OFFSET_FILE"), O_RDONLY);
  if (file >= 0) { if (read(file, text, 31) < 0) text[0] = 0; close(file); }
  long long us = (long long)tv->tv_sec * 1000000 + tv->tv_usec + atoll(text) * 1000;
  tv->tv_sec = us / 1000000; tv->tv_usec = us % 1000000;
  return result;
}`;

const folder = mkdtempSync(join(tmpdir(), "pgw-clock-"));
const library = join(folder, "clock.so");
writeFileSync(join(folder, "clock.c"), SHIM);
const built = spawnSync("cc", ["-shared", "-fPIC", "-o", library, join(folder, "clock.c"), "-ldl"]).status === 0;
const isHere = process.platform === "linux" && built && (await sharedRedis()) !== null;
const open: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const close of open.toReversed()) await close();
  rmSync(folder, { recursive: true, force: true });
});

describe.skipIf(!isHere).each([3_600_000, 90_000, 1, -1, -90_000, -3_600_000])(
  "F42 the server's clock jumps by %i ms",
  (jumpMs) => {
    test("dead permits come back in time, living ones stay or are told as lost, and no key is left without a life", async () => {
      const file = join(folder, `offset${jumpMs}`);
      const env = { ...process.env, LD_PRELOAD: library, CLOCK_OFFSET_FILE: file };
      const server = await startRedis({ env });
      open.push(() => server.stop());
      const group = new Fleet({
        url: server.url,
        timeoutMs: 5_000,
        leaseTtlMs: 1_000,
        sources: { s: { maxConcurrency: 2 }, t: { rpm: 600 } },
        scheduling: { pacer: false, fairness: false },
      });
      open.push(() => group.close());
      const worker = group.worker();
      const held = await eventually(() => worker.granted("s"));
      await worker.granted("s");
      await worker.settle(await worker.granted("t"));
      const seconds = async () => Number(((await server.command("TIME")) as string[])[0]);
      const before = await seconds();
      writeFileSync(file, String(jumpMs));
      if (Math.abs(jumpMs) > 1_000) expect(Math.abs((await seconds()) - before)).toBeGreaterThan(60);
      // Beyond a lease's time at once: it is told as lost. Else it is kept by renewal, whatever the clock shows.
      const [isKept] = await worker.renew(held);
      expect(isKept).toBe(jumpMs < 1_000);
      // The other one's holder is gone: its place comes back within a lease's time, not within the hour.
      await eventually(() => worker.granted("s"), 3_000);
      const slot = await worker.want("t");
      if (isRefusal(slot)) expect(slot.waitHintMs).toBeLessThanOrEqual(60_500);
      for (const key of (await server.command("KEYS", "*")) as string[]) {
        const ttlMs = Number(await server.command("PTTL", key));
        expect(ttlMs, key).toBeGreaterThan(0);
      }
      await eventually(async () => {
        await worker.tick({});
        expect((await worker.source("s")).inflight).toBe(0);
      }, 5_000);
    });
  },
);
