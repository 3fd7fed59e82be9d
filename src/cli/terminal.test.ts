import { describe, expect, it } from "vitest";
import { clip, displayWidth, printable, styleOf } from "./terminal.js";

const tty = { write: () => true, isTTY: true };
const pipe = { write: () => true };

describe("styleOf", () => {
  it("colours only on a terminal, and never against NO_COLOR or a dumb terminal", () => {
    expect(styleOf(tty, {}).red("x")).toBe("\u001b[31mx\u001b[39m");
    expect(styleOf(pipe, {}).red("x")).toBe("x");
    expect(styleOf(tty, { NO_COLOR: "1" }).red("x")).toBe("x");
    expect(styleOf(tty, { NO_COLOR: "" }).red("x")).not.toBe("x");
    expect(styleOf(tty, { TERM: "dumb" }).red("x")).toBe("x");
  });
});

describe("displayWidth and clip", () => {
  it("count wide characters twice and colours not at all", () => {
    expect(displayWidth("ab")).toBe(2);
    expect(displayWidth("模型")).toBe(4);
    expect(displayWidth("\u001b[31mab\u001b[39m")).toBe(2);
  });

  it("cut to the width, and end the colour that was cut open", () => {
    expect(clip("abc", 3)).toBe("abc");
    expect(clip("abcd", 3)).toBe("ab…");
    expect(clip("\u001b[31mabcd\u001b[39m", 3)).toBe("\u001b[31mab…\u001b[0m");
    expect(displayWidth(clip("模型模型", 5))).toBeLessThanOrEqual(5);
  });
});

describe("printable", () => {
  it("removes what could command a terminal, and keeps text, line breaks and tabs", () => {
    expect(printable("a\u001b]0;title\u0007b\n\tc")).toBe("a]0;titleb\n\tc");
    expect(printable("\u202eabc\u009b31m")).toBe("abc31m");
    expect(printable("模型 🙂")).toBe("模型 🙂");
  });
});
