import { describe, expect, it } from "vitest";
import { hi, simulate } from "./harness.js";

describe("a long queue", () => {
  it.each(["sync", "async"] as const)(
    "calls that wait far longer than the stall window are all served while the scope makes progress (%s governor)",
    async (governor) => {
      const { kernel, client } = simulate({
        sources: [{ rpm: 60 }],
        governor,
        options: { backpressure: { stallWindowMs: 100_000 } },
      });
      const replies = await kernel.run(Promise.all(Array.from({ length: 400 }, () => client.chat(hi))));
      expect(replies).toHaveLength(400);
      expect(kernel.now()).toBeGreaterThan(400_000);
    },
  );
});
