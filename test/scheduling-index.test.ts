import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

/** Where each fault of the reference that scheduling has to bear has its test, by the beginning of the title. */

const FILE = "scheduling-faults.test.ts";
const WANTED = ["F18", "F20", "F67", "F68"];

it("every fault of scheduling has a test of that title", () => {
  const text = readFileSync(join(dirname(fileURLToPath(import.meta.url)), FILE), "utf8");
  for (const id of WANTED) expect(text, id).toContain(`it("${id} `);
});
