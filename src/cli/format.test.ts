import { CommanderError } from "commander";
import { describe, expect, it } from "vitest";
import { parseCount, parseDurationMs } from "./arguments.js";
import { formatDuration, formatMoney, formatRate, plural, progressBar } from "./format.js";
import { tableLines } from "./table.js";

describe("formats", () => {
  it.each([
    [0, "0 ms"],
    [850, "850 ms"],
    [4_240, "4.2 s"],
    [185_000, "3m 05s"],
    [7_800_000, "2h 10m"],
    [Number.POSITIVE_INFINITY, "–"],
  ])("%d ms reads %s", (durationMs, text) => expect(formatDuration(durationMs)).toBe(text));

  it.each([
    [0, "0.00"],
    [12.345, "12.35"],
    [0.01234, "0.0123"],
    [0.000456, "0.00046"],
  ])("money %d reads %s", (amount, text) => expect(formatMoney(amount)).toBe(text));

  it("rates keep three digits at most", () => {
    expect([0.456, 12.34, 1234.5].map(formatRate)).toEqual(["0.46", "12.3", "1,235"]);
  });

  it("a bar never leaves its cells", () => {
    expect(progressBar(0.5, 4)).toBe("██░░");
    expect(progressBar(2, 3)).toBe("███");
    expect(progressBar(-1, 3)).toBe("░░░");
  });

  it("counts name one and many", () => {
    expect(plural(1, "line")).toBe("1 line");
    expect(plural(1_200, "try", "tries")).toBe("1,200 tries");
  });
});

describe("tableLines", () => {
  it("aligns columns by the widest cell, wide characters and colours included", () => {
    const rows = [
      ["模型", "7"],
      ["\u001b[31mab\u001b[39m", "1,000"],
    ];
    expect(tableLines([{ title: "name" }, { title: "n", align: "right" }], rows)).toEqual([
      "name      n",
      "模型      7",
      "\u001b[31mab\u001b[39m    1,000",
    ]);
  });
});

describe("arguments", () => {
  it.each([
    ["90s", 90_000],
    ["15m", 900_000],
    ["1.5h", 5_400_000],
    ["250ms", 250],
    ["30d", 2_592_000_000],
  ])("%s is %d ms", (text, durationMs) => expect(parseDurationMs(text)).toBe(durationMs));

  it.each(["", "0", "-5s", "5 parsecs", "s", "NaN"])("%j is no length of time", (text) => {
    expect(() => parseDurationMs(text)).toThrow(CommanderError);
  });

  it.each(["90", "30", "1.5", " 3 "])("%j lacks its unit", (text) => {
    expect(() => parseDurationMs(text)).toThrow("Give the unit too");
  });

  it("a count is a whole number of at least 1", () => {
    expect(parseCount("64")).toBe(64);
    for (const text of ["0", "-1", "1.5", "many", ""]) expect(() => parseCount(text)).toThrow(CommanderError);
  });
});
