import { describe, expect, it } from "vitest";
import { GovernanceBackendError } from "../errors.js";
import { asked, createBench, FREED, SETTLE } from "./dispatcher.test-helper.js";

describe("answers that arrive late", () => {
  it("who was refused for the sake of one that has left meanwhile is asked again", async () => {
    const bench = createBench("async");
    const [head, next] = [bench.entry(), bench.entry()];
    await bench.admitAll([head, next]);
    bench.answer = (_, { wants }) => wants[0]!.leaseId === next.want.leaseId || {};
    bench.reply = (_, usual) => {
      const reply = usual();
      if (head.end === null) bench.dispatcher.withdraw(head, new Error("left"));
      return reply;
    };
    bench.emit(FREED);
    await bench.rest();
    expect(next.end).toBe("granted");
  });

  it("a more urgent call that came meanwhile is asked for itself", async () => {
    const bench = createBench("async");
    const urgent = bench.entry({ priority: -1 });
    bench.answer = (want) => want.priority < 0 || {};
    bench.reply = (_, usual) => {
      if (urgent.end === null && bench.ticks.length === 1) bench.admit(urgent);
      return usual();
    };
    const patient = bench.entry();
    await bench.admitAll([patient]);
    expect([urgent.end, patient.end]).toEqual(["granted", null]);
  });

  it("a call that is refused in its own turn learns of it once", async () => {
    const bench = createBench("sync");
    const told: string[] = [];
    bench.admit(bench.entry({}, (refusal) => told.push(refusal.leaseId) > 0));
    expect(told).toEqual(["1"]);
  });
});

describe("replies that were lost", () => {
  const lost = () => {
    throw new Error("reply lost");
  };

  it("a want that rode with accounts is given back when asking again fails", async () => {
    const bench = createBench("async");
    bench.answer = () => true;
    const entry = bench.entry();
    // One account is on its way; the next one leaves together with the want.
    bench.dispatcher.settle(SETTLE);
    bench.dispatcher.settle(SETTLE);
    bench.admit(entry);
    bench.reply = (batch, usual) => {
      if (batch.wants.length === 0) return usual();
      usual();
      bench.failNow = new Error("not connected");
      return lost();
    };
    await bench.rest();
    expect(bench.ticks[1]).toMatchObject({ settles: [SETTLE], wants: [{ leaseId: entry.want.leaseId }] });
    expect(entry.end).toBeInstanceOf(GovernanceBackendError);
    expect(bench.held.size).toBe(1);
    bench.failNow = null;
    bench.reply = null;
    await bench.kernel.advance(5_000);
    expect(bench.held.size).toBe(0);
  });

  it("one whose caller leaves before it is asked again is not asked for, and given back", async () => {
    const bench = createBench("async");
    bench.answer = () => true;
    const [leaver, other] = [bench.entry(), bench.entry()];
    bench.dispatcher.settle(SETTLE);
    bench.dispatcher.settle(SETTLE);
    bench.admit(leaver);
    bench.admit(other);
    let failures = 0;
    bench.reply = (batch, usual) => {
      if (batch.wants.length === 0) return usual();
      failures += 1;
      if (failures === 1) {
        usual();
        bench.dispatcher.withdraw(leaver, new Error("left"));
        return lost();
      }
      return usual();
    };
    await bench.kernel.advance(5_000);
    expect(asked(bench.ticks).filter((wants) => wants.includes(leaver.want.leaseId))).toHaveLength(1);
    expect([...bench.held]).toEqual([other.want.leaseId]);
  });

  it("one that leaves with the refusal of another is given back", async () => {
    const bench = createBench("async");
    bench.answer = () => true;
    bench.reply = (_, usual) => {
      usual();
      return lost();
    };
    const [ahead, impatient] = [bench.entry({}, () => true, 60_000), bench.entry({}, () => false, 60_000)];
    await bench.admitAll([impatient]);
    expect([...bench.held]).toEqual([impatient.want.leaseId]);
    // More urgent ones fill the whole tick; their head is refused, and so is everybody behind it.
    const urgent = Array.from({ length: 40 }, () => bench.entry({ priority: -1 }, () => true, 60_000));
    for (const entry of [ahead, ...urgent]) bench.admit(entry);
    bench.reply = null;
    bench.answer = () => ({});
    await bench.kernel.advance(5_000);
    expect(impatient.end).toMatchObject({ kind: "gate" });
    expect(bench.held.size).toBe(0);
  });
});
