import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, createServer, type Server } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type SimulatedProvider, startSimulatedProvider } from "../src/testing/provider/server.js";
import { makeFolder, sourceEnv, startCli } from "./cli-harness.js";

/** The end of a command whose telemetry can't be kept: soon, and with one word about it. */

let folder: ReturnType<typeof makeFolder>;
let provider: SimulatedProvider;
const servers: Server[] = [];

beforeEach(async () => {
  folder = makeFolder();
  provider = await startSimulatedProvider();
});

afterEach(async () => {
  for (const server of servers.splice(0)) server.close();
  await provider.stop();
  folder.remove();
});

async function dsnOf(server: Server): Promise<string> {
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `postgres://me:sesame-3391@127.0.0.1:${(server.address() as AddressInfo).port}/calls`;
}

/** Answers every connection with these bytes, or with none. */
const answering = (bytes?: string) =>
  createServer((socket) => {
    socket.on("error", () => {});
    if (bytes !== undefined) socket.once("data", () => socket.write(bytes));
  });

async function chat(env: Record<string, string>, args: readonly string[] = []) {
  const startedAt = performance.now();
  const ended = await startCli(["chat", "hello", ...args], {
    folder: folder.path,
    env: { ...sourceEnv(provider.baseUrl), ...env },
  }).finished;
  expect(ended.code, ended.stderr).toBe(0);
  expect(ended.stdout + ended.stderr).not.toContain("sesame");
  return { ...ended, tookMs: performance.now() - startedAt };
}

/** Said once: how many, why, and what to do. */
function expectLastWord(stderr: string, why: RegExp): void {
  const told = stderr.split("\n").filter((line) => line.startsWith("polygateway:"));
  expect(told, stderr).toHaveLength(1);
  expect(told[0]).toMatch(/1 row is lost: .*mend that, or keep telemetry in another place/);
  expect(told[0]).toMatch(why);
  expect(told[0]).not.toContain("tried again");
}

describe("a PostgreSQL that is none", () => {
  it.each([
    [
      "a web server",
      () => createHttpServer((_, response) => response.end("hello")),
      /a web server \(HTTP\) answers there/,
    ],
    ["Redis", () => answering("-ERR Protocol error\r\n"), /Redis answers there/],
    ["an SSH server", () => answering("SSH-2.0-OpenSSH_9.2\r\n"), /an SSH server answers there/],
    ["something else", () => answering("220 mail.example\r\n"), /what answers there is not PostgreSQL/],
    ["nobody who speaks", () => answering(), /takes the connection, but does not answer within 2 s/],
  ])("is told as what it is (%s), and holds nothing up", async (_, server, why) => {
    const { stderr, tookMs } = await chat({}, ["--db", await dsnOf(server())]);
    expectLastWord(stderr, why);
    // Ten seconds of waiting for a flush were the fault; the machine may be slow.
    expect(tookMs).toBeLessThan(9_500);
  });
});

describe("a batch whose PostgreSQL is silent", () => {
  it("is not held up by it at its end, and tells its loss", async () => {
    writeFileSync(
      join(folder.path, "in.jsonl"),
      ["a", "b", "c"].map((id) => JSON.stringify({ id, prompt: id })).join("\n"),
    );
    const db = await dsnOf(answering());
    const batch = startCli(["batch", "in.jsonl", "-o", "out.jsonl", "--db", db], {
      folder: folder.path,
      env: sourceEnv(provider.baseUrl),
    });
    let answeredAt = 0;
    const watch = setInterval(() => {
      const out = join(folder.path, "out.jsonl");
      if (answeredAt === 0 && existsSync(out) && readFileSync(out, "utf8").trim().split("\n").length === 3)
        answeredAt = performance.now();
    }, 20);
    const { code, stdout, stderr } = await batch.finished;
    clearInterval(watch);
    const endedAt = performance.now();
    expect(code, stderr).toBe(0);
    expect(stdout).toContain("3");
    expect(stderr).toMatch(/3 rows are lost: .*does not answer within/);
    expect(stderr).toMatch(/The books of earlier runs could not be checked/);
    // Both in company of others on a slow machine.
    expect(endedAt - answeredAt).toBeLessThan(7_000);
  });
});

describe("telemetry that is lost", () => {
  it("is told of a database that is away", async () => {
    const { stderr } = await chat({}, ["--db", "postgres://me:sesame-3391@127.0.0.1:1/calls"]);
    expectLastWord(stderr, /postgres:\/\/me@127\.0\.0\.1:1\/calls can't be reached \(connect ECONNREFUSED/);
  });

  it("is told of a file that can't be opened", async () => {
    mkdirSync(join(folder.path, "folder.db"));
    expectLastWord((await chat({}, ["--db", "folder.db"])).stderr, /folder\.db can't be opened or written/);
  });

  it("is told of JSON lines that can't be written", async () => {
    const env = { PGW_TELEMETRY_BACKEND: "jsonl", PGW_TELEMETRY_JSONL_PATH: "/dev/full", PGW_JOURNAL: "off" };
    expectLastWord((await chat(env)).stderr, /\/dev\/full can't be written \(ENOSPC/);
  });
});
