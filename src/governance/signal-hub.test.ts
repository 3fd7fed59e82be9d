import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { onSignal } from "./signal-hub.js";

const listenersOf = (signal: AbortSignal): number => getEventListeners(signal, "abort").length;

test("any number of calls share one listener, which goes with the last of them", () => {
  const { signal } = new AbortController();
  const leave = Array.from({ length: 100 }, () => onSignal(signal, () => {}));
  expect(listenersOf(signal)).toBe(1);
  for (const [index, leaveOne] of leave.entries()) {
    leaveOne();
    expect(listenersOf(signal)).toBe(index === 99 ? 0 : 1);
  }
});

test("every listener is told once with the signal's own reason; those who left are not", () => {
  const controller = new AbortController();
  const told: string[] = [];
  const reason = { any: "thing" };
  const tell = (name: string) => (given: unknown) => {
    expect(given).toBe(reason);
    told.push(name);
  };
  onSignal(controller.signal, tell("first"));
  const leave = onSignal(controller.signal, tell("second"));
  onSignal(controller.signal, tell("third"));
  leave();
  leave();
  controller.abort(reason);
  expect(told).toEqual(["first", "third"]);
  expect(listenersOf(controller.signal)).toBe(0);
});

test("the same function given twice is told twice, and leaves one at a time", () => {
  const controller = new AbortController();
  let told = 0;
  const count = () => {
    told += 1;
  };
  const leave = onSignal(controller.signal, count);
  onSignal(controller.signal, count);
  onSignal(controller.signal, count);
  leave();
  controller.abort();
  expect(told).toBe(2);
});

test("leaving after it fired, or beside a later newcomer, takes nobody else away", () => {
  const { signal } = new AbortController();
  const leaveFirst = onSignal(signal, () => {});
  leaveFirst();
  const leaveSecond = onSignal(signal, () => {});
  leaveFirst();
  expect(listenersOf(signal)).toBe(1);
  leaveSecond();
  expect(listenersOf(signal)).toBe(0);
  const controller = new AbortController();
  const leave = onSignal(controller.signal, () => {});
  controller.abort();
  leave();
  expect(listenersOf(controller.signal)).toBe(0);
});
