import { randomFillSync } from "node:crypto";
import { expect, test } from "vitest";
import { makeUuidV7 } from "./uuid.js";

const FORM = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const fillRandom = (bytes: Uint8Array): void => void randomFillSync(bytes);

function wallMsOf(uuid: string): number {
  return Number.parseInt(uuid.slice(0, 8) + uuid.slice(9, 13), 16);
}

test("carries the wall clock, the version and the variant", () => {
  const uuid = makeUuidV7(() => 1_767_225_600_123, fillRandom)();
  expect(uuid).toMatch(FORM);
  expect(wallMsOf(uuid)).toBe(1_767_225_600_123);
});

test("ids are unique and sort in the order they were made, also within one millisecond and when the clock steps back", () => {
  let wallMs = 1_767_225_600_000;
  const makeUuid = makeUuidV7(() => wallMs, fillRandom);
  const ids: string[] = [];
  for (let index = 0; index < 20_000; index++) {
    if (index === 10_000) wallMs -= 5_000;
    if (index === 15_000) wallMs += 60_000;
    ids.push(makeUuid());
  }
  expect(ids.every((id) => FORM.test(id))).toBe(true);
  expect(new Set(ids).size).toBe(ids.length);
  expect([...ids].sort()).toEqual(ids);
});

test("the last 62 bits are random: all of them vary", () => {
  const makeUuid = makeUuidV7(() => 0, fillRandom);
  const seen = Array.from({ length: 16 }, () => new Set<string>());
  for (let index = 0; index < 2_000; index++) {
    const digits = makeUuid().slice(19).replace("-", "");
    for (const [position, digit] of [...digits].entries()) seen[position]!.add(digit);
  }
  expect(seen.map((digits) => digits.size)).toEqual([4, ...Array(15).fill(16)]);
});

test("random bytes are never used twice", () => {
  let next = 0;
  const makeUuid = makeUuidV7(
    () => 0,
    (bytes) => {
      for (let index = 0; index < bytes.length; index += 2) {
        bytes[index] = next >> 8;
        bytes[index + 1] = next++ & 0xff;
      }
    },
  );
  const tails = Array.from({ length: 5_000 }, () => makeUuid().slice(24));
  expect(new Set(tails).size).toBe(tails.length);
});
