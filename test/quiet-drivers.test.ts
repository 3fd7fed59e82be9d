import { writeFileSync } from "node:fs";
import { type AddressInfo, createServer, type Server } from "node:net";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { makeFolder, sourceEnv, startCli } from "./cli-harness.js";
import { sharedRedis, startRedis } from "./services/redis.js";

/** Packages that this one uses write nothing to stderr in their own name. */

const isHere = (await sharedRedis()) !== null;
const folder = makeFolder();
const open: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const close of open.toReversed()) await close();
  folder.remove();
});

const run = (args: readonly string[], env: Record<string, string>) =>
  startCli(args, { folder: folder.path, env }).finished;

describe.skipIf(!isHere)("ioredis", () => {
  const inRedis = (url: string) => ({
    ...sourceEnv("http://127.0.0.1:1"),
    PGW_LIMITER_BACKEND: "redis",
    PGW_BREAKER_BACKEND: "redis",
    REDIS_URL: url,
  });

  it("of a user without INFO, and of a password that nobody asked for", async () => {
    const server = await startRedis();
    open.push(() => server.stop());
    const rights = ["on", ">sesame-7281", "~pgw:*", "&pgw:*", "+@all", "-info"];
    await server.command("ACL", "SETUSER", "worker", ...rights);
    const addresses = [
      `redis://worker:sesame-7281@127.0.0.1:${server.port}`,
      `redis://:not-asked-for@127.0.0.1:${server.port}`,
    ];
    for (const url of addresses) {
      for (const args of [["check"], ["chat", "hi"]]) {
        const { stdout, stderr } = await run(args, inRedis(url));
        expect(stderr).not.toMatch(/ioredis|ready check|INFO|\[WARN\]|does not require a password/i);
        expect(stdout + stderr).not.toMatch(/sesame|not-asked-for/);
        if (args[0] === "check") expect(stdout).toMatch(/✓ Redis at .*\n.*answers in/);
      }
    }
  });
});

async function portOf(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

describe("pg", () => {
  it.each(["prefer", "require", "verify-ca", "verify-full"])("of sslmode=%s", async (mode) => {
    // Says that it has no TLS.
    const server = createServer((socket) => {
      socket.on("error", () => {});
      socket.once("data", () => socket.end("N"));
    });
    const port = await portOf(server);
    const { code, stderr } = await run(["report", "--db", `postgres://me@127.0.0.1:${port}/calls?sslmode=${mode}`], {});
    server.close();
    expect(code).toBe(1);
    expect(stderr).toContain("The server does not support SSL connections");
    expect(stderr).not.toMatch(/SECURITY WARNING|\(node:\d+\)|uselibpqcompat/);
  });

  it("of a password in ~/.pgpass, which it is given all the same", async () => {
    let given = "";
    const asksForPassword = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 3]);
    const server = createServer((socket) => {
      socket.on("error", () => {});
      socket.once("data", () => {
        socket.once("data", (bytes) => {
          given = bytes.subarray(5, -1).toString();
          socket.end();
        });
        socket.write(asksForPassword);
      });
    });
    const port = await portOf(server);
    writeFileSync(join(folder.path, ".pgpass"), "*:*:*:me:sesame-7281\n", { mode: 0o600 });
    const { code, stdout, stderr } = await run(["report", "--db", `postgres://me@127.0.0.1:${port}/calls`], {});
    server.close();
    expect([code, given]).toEqual([1, "sesame-7281"]);
    expect(stdout + stderr).not.toMatch(/deprecat|\(node:\d+\)|sesame/i);
  });
});
