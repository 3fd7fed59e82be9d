import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { acquireLock, type LockOwner, thisProcess } from "./lock.js";
import { processLife } from "./process-life.js";

const dir = mkdtempSync(join(tmpdir(), "pgw-lock-"));
const path = join(dir, "out.jsonl.lock");
afterAll(() => rmSync(dir, { recursive: true, force: true }));
beforeEach(() => {
  for (const name of readdirSync(dir)) rmSync(join(dir, name));
});

let counter = 0;
const self = () => thisProcess("2026-01-01T00:00:00.000Z", `nonce-${counter++}`);
const gonePid = () => spawnSync(process.execPath, ["-e", ""]).pid;
const leave = (owner: Partial<LockOwner>) => writeFileSync(path, JSON.stringify({ ...self(), ...owner }));

describe("lock of an output", () => {
  it("keeps a second run out, says who holds it, and is gone after release", () => {
    const release = acquireLock(path, self());
    expect(() => acquireLock(path, self())).toThrow(
      new RegExp(`in use by process ${process.pid} on ${hostname()}, since 2026`),
    );
    release();
    expect(readdirSync(dir)).toEqual([]);
    acquireLock(path, self())();
  });

  it("takes over the lock of a process that is gone", () => {
    leave({ pid: gonePid() });
    const owner = self();
    const release = acquireLock(path, owner);
    expect(JSON.parse(readFileSync(path, "utf8"))).toEqual(owner);
    expect(readdirSync(dir)).toEqual(["out.jsonl.lock"]);
    release();
    expect(existsSync(path)).toBe(false);
  });

  it.runIf(process.platform === "linux")("takes over when the pid belongs to a later process now", () => {
    leave({ processStart: "another boot:1" });
    acquireLock(path, self())();
  });

  it("leaves the lock of another host alone, and one it can't read", () => {
    leave({ host: "elsewhere", pid: gonePid() });
    expect(() => acquireLock(path, self())).toThrow(/on elsewhere.*delete/);
    writeFileSync(path, "{");
    expect(() => acquireLock(path, self())).toThrow(/another run.*delete/);
  });

  it("takes over when an earlier takeover was itself killed half way", () => {
    leave({ pid: gonePid() });
    writeFileSync(`${path}.takeover`, readFileSync(path));
    acquireLock(path, self())();
    expect(readdirSync(dir)).toEqual([]);
  });

  it("does not take a lock away that changed hands after it was looked at", () => {
    leave({ pid: gonePid() });
    let texts = 0;
    const owner = self();
    const slow = {
      ...owner,
      // The second text is the takeover's own lock: just before it, another run wins.
      toJSON() {
        if (++texts === 2) leave({ nonce: "the winner" });
        return owner;
      },
    };
    expect(() => acquireLock(path, slow)).toThrow(/in use/);
    expect(JSON.parse(readFileSync(path, "utf8")).nonce).toBe("the winner");
    expect(readdirSync(dir)).toEqual(["out.jsonl.lock"]);
  });

  it("waits for nobody while another run is taking over", () => {
    leave({ pid: gonePid() });
    writeFileSync(`${path}.takeover`, JSON.stringify(self()));
    expect(() => acquireLock(path, self())).toThrow(/in use/);
  });

  it("does not release a lock that is another's by now", () => {
    const release = acquireLock(path, self());
    leave({ nonce: "somebody else" });
    release();
    expect(existsSync(path)).toBe(true);
  });

  it.runIf(process.platform === "linux")("counts a killed process that nobody has reaped as gone", async () => {
    // The shell never waits for its child, so the child stays a zombie.
    const parent = spawn("sh", ["-c", "true & echo $!; exec sleep 60"], { stdio: ["ignore", "pipe", "ignore"] });
    const pid = Number(await new Promise<Buffer>((resolve) => parent.stdout.once("data", resolve)));
    for (let turn = 0; turn < 200 && processLife(pid).alive; turn++) await new Promise((r) => setTimeout(r, 10));
    expect(processLife(pid)).toEqual({ alive: false });
    parent.kill();
    expect(processLife(process.pid)).toMatchObject({ alive: true, start: expect.stringMatching(/:\d+$/) });
  });
});
