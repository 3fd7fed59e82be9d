import fc from "fast-check";
import { expect, test } from "vitest";
import { BinaryHeap } from "./binary-heap.js";

function drain(heap: BinaryHeap<number>): number[] {
  const drained: number[] = [];
  for (let top = heap.pop(); top !== undefined; top = heap.pop()) drained.push(top);
  return drained;
}

test("entries leave in order, whatever the order they came in", () => {
  fc.assert(
    fc.property(fc.array(fc.integer()), (numbers) => {
      const heap = new BinaryHeap<number>((a, b) => a < b);
      for (const number of numbers) heap.push(number);
      expect(heap.peek()).toBe(numbers.length === 0 ? undefined : Math.min(...numbers));
      expect(heap.size).toBe(numbers.length);
      expect(drain(heap)).toEqual([...numbers].sort((a, b) => a - b));
    }),
  );
});

test("retain keeps the order of what is left", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 50 })), (numbers) => {
      const heap = new BinaryHeap<number>((a, b) => a < b);
      for (const number of numbers) heap.push(number);
      heap.retain((number) => number % 3 !== 0);
      expect(drain(heap)).toEqual(numbers.filter((number) => number % 3 !== 0).sort((a, b) => a - b));
    }),
  );
});
