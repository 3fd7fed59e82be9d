import { BinaryHeap } from "../domain/binary-heap.js";
import type { CancelTimer } from "../ports/runtime.js";

/** The one timer of the operating system that a wheel uses. */
export interface SystemTimer {
  cancel(): void;
  /** Whether this timer alone keeps the process running. */
  keepProcessAlive(keep: boolean): void;
}

export interface TimerWheelOptions {
  /** Monotonic milliseconds. */
  now(): number;
  /** May fire early or late; the wheel checks the clock itself. */
  startSystemTimer(delayMs: number, callback: () => void): SystemTimer;
}

export interface TimerWheel {
  /** Runs `callback` once, `delayMs` from now or up to one slot (plus the system's own delay) later, never earlier. */
  schedule(delayMs: number, callback: () => void): CancelTimer;
  /** Timers that are neither fired nor cancelled. */
  pending(): number;
}

interface Entry {
  callback: (() => void) | undefined;
  slot: Slot;
  previous: Entry | undefined;
  next: Entry | undefined;
}

interface Slot {
  readonly dueMs: number;
  first: Entry | undefined;
  last: Entry | undefined;
}

const FINE_SLOT_MS = 1;
const COARSE_SLOT_MS = 16;
/** From this delay on a coarse slot is precise enough (1.6 %), and far fewer slots exist. */
const COARSE_FROM_MS = 1_000;
/** setTimeout turns longer delays into 1 ms. */
const LONGEST_SYSTEM_DELAY_MS = 2 ** 31 - 1;
/** Slots emptied by cancellation are only swept when there are many of them. */
const SWEEP_FROM_SLOTS = 4_096;

function slotTime(nowMs: number, delayMs: number): number {
  const slotMs = delayMs < COARSE_FROM_MS ? FINE_SLOT_MS : COARSE_SLOT_MS;
  return Math.ceil((nowMs + delayMs) / slotMs) * slotMs;
}

function append(slot: Slot, callback: () => void): Entry {
  const entry: Entry = { callback, slot, previous: slot.last, next: undefined };
  if (slot.last === undefined) slot.first = entry;
  else slot.last.next = entry;
  slot.last = entry;
  return entry;
}

function unlink({ slot, previous, next }: Entry): void {
  if (previous === undefined) slot.first = next;
  else previous.next = next;
  if (next === undefined) slot.last = previous;
  else next.previous = previous;
}

/** One failing callback must not take the other due timers with it: it surfaces as an uncaught exception, as with setTimeout. */
function runGuarded(callback: () => void): void {
  try {
    callback();
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}

/**
 * Many timers on one system timer (spec reference-performance, lesson 5). Due times are rounded up to a slot; a slot is a
 * linked list, so that adding to an existing slot and cancelling are O(1). A new slot costs O(log slots). The system
 * timer is set to the earliest slot in use: nothing wakes up while nothing is due.
 */
export function createTimerWheel({ now, startSystemTimer }: TimerWheelOptions): TimerWheel {
  const slots = new Map<number, Slot>();
  const order = new BinaryHeap<Slot>((a, b) => a.dueMs < b.dueMs);
  let pending = 0;
  let firing = false;
  let armed: { readonly dueMs: number; readonly timer: SystemTimer } | undefined;

  function arm(dueMs: number): void {
    armed?.timer.cancel();
    const delayMs = Math.min(Math.max(Math.ceil(dueMs - now()), 1), LONGEST_SYSTEM_DELAY_MS);
    const timer = startSystemTimer(delayMs, fireDue);
    timer.keepProcessAlive(pending > 0);
    armed = { dueMs, timer };
  }

  function dropFirstSlot(slot: Slot): void {
    order.pop();
    slots.delete(slot.dueMs);
  }

  function takeDueSlots(): Slot[] {
    const nowMs = now();
    const due: Slot[] = [];
    for (let slot = order.peek(); slot !== undefined; slot = order.peek()) {
      if (slot.first !== undefined && slot.dueMs > nowMs) break;
      dropFirstSlot(slot);
      due.push(slot);
    }
    return due;
  }

  function fireDue(): void {
    armed = undefined;
    firing = true;
    for (const slot of takeDueSlots()) {
      // A callback may cancel entries of this very list, so the list's head is read anew each time.
      for (let entry = slot.first; entry !== undefined; entry = slot.first) {
        const { callback } = entry;
        release(entry);
        if (callback !== undefined) runGuarded(callback);
      }
    }
    firing = false;
    const next = order.peek();
    if (next !== undefined) arm(next.dueMs);
  }

  function armedDueMs(): number {
    return armed === undefined ? Number.POSITIVE_INFINITY : armed.dueMs;
  }

  function release(entry: Entry): void {
    if (entry.callback === undefined) return;
    entry.callback = undefined;
    unlink(entry);
    pending -= 1;
    if (pending === 0) armed?.timer.keepProcessAlive(false);
  }

  function sweepEmptySlots(): void {
    if (order.size < SWEEP_FROM_SLOTS || order.size < 2 * pending) return;
    order.retain((slot) => slot.first !== undefined);
    for (const [dueMs, slot] of slots) if (slot.first === undefined) slots.delete(dueMs);
  }

  function slotAt(dueMs: number): Slot {
    const existing = slots.get(dueMs);
    if (existing !== undefined) return existing;
    sweepEmptySlots();
    const slot: Slot = { dueMs, first: undefined, last: undefined };
    slots.set(dueMs, slot);
    order.push(slot);
    return slot;
  }

  function schedule(delayMs: number, callback: () => void): CancelTimer {
    const dueMs = slotTime(now(), Math.max(delayMs || 0, 0));
    const entry = append(slotAt(dueMs), callback);
    pending += 1;
    if (!firing && dueMs < armedDueMs()) arm(dueMs);
    else if (pending === 1) armed?.timer.keepProcessAlive(true);
    return () => release(entry);
  }

  return { schedule, pending: () => pending };
}
