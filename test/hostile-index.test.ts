import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

/** Where each fault of the reference (F1 to F30 and the security ones) has its test, by the beginning of the title. */

const NETWORK = "hostile-network.test.ts";
const ANSWERS = "hostile-answers.test.ts";
const INPUT = "hostile-input.test.ts";
const LINEAR = "hostile-properties.test.ts";

const TESTS: Readonly<Record<string, readonly [file: string, title: string]>> = {
  ...Object.fromEntries([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 19, 23, 24, 25].map((id) => [`F${id}`, [NETWORK, `F${id} `]])),
  ...Object.fromEntries(
    [11, 12, 13, 14, 15, 16, 17, 21, 22, 26, 27, 28, 81, 83].map((id) => [`F${id}`, [ANSWERS, `F${id} `]]),
  ),
  ...Object.fromEntries([84, 85, 91].map((id) => [`F${id}`, [INPUT, `F${id} `]])),
  F82: ["secrets.test.ts", "F82 "],
  F92: [LINEAR, "linear in"],
};

/** Not a matter of the chat transport alone, with the reason. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  F30: "repair of structured output: tested with the structured package; its reader's work is bounded there",
};

const WANTED = [
  ...Array.from({ length: 17 }, (_, index) => index + 1),
  19,
  ...Array.from({ length: 8 }, (_, index) => index + 21),
  30,
  81,
  83,
  84,
  85,
  91,
  92,
];

it("every fault has a test of that title, or a reason", () => {
  for (const id of WANTED.map((number) => `F${number}`)) {
    const [file, title] = TESTS[id] ?? [];
    if (file === undefined || title === undefined) expect(ELSEWHERE[id], id).toBeDefined();
    else expect(readFileSync(join(dirname(fileURLToPath(import.meta.url)), file), "utf8"), id).toContain(`"${title}`);
  }
});
