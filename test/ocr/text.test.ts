import { describe, expect, test } from "vitest";
import { readableText } from "../../src/cli/ocr-text.js";
import type { OcrElement } from "../../src/domain/ocr.js";

function textOf(...contents: Partial<OcrElement>[]): string {
  const elements = contents.map(
    (content, order): OcrElement => ({ type: "table", rawType: "t", bbox: [0, 0, 1, 1], page: 1, order, ...content }),
  );
  return readableText({ object: "ocr.layout", pages: [], elements });
}

describe("the text of a layout", () => {
  test("has the rows of a table as lines with tabs between the cells", () => {
    const html =
      '<html><body><table border="1"><thead><tr><th>Year</th><th>Profit &amp; loss</th></tr></thead><tbody><tr><td></td><td>3 &lt; 4<br>see <b>note</b></td></tr><tr><td colspan="2">Sum</td><td>&#8364;&nbsp;5</td></tr></tbody></table></body></html>';
    expect(textOf({ type: "title", text: "Report" }, { html })).toBe(
      "Report\n\nYear\tProfit & loss\n\t3 < 4 see note\nSum\t\t€ 5",
    );
  });

  test("has the rows of a LaTeX table too, and formulas as they are written", () => {
    const latex = "\\begin{tabular}{|l|r|}\\hline A & B \\\\ \\hline R\\&D & 2 \\\\ \\end{tabular}";
    expect(textOf({ latex }, { type: "formula", latex: "E = mc^{2}" })).toBe("A\tB\nR&D\t2\n\nE = mc^{2}");
  });

  test("has no markup where a server puts HTML into texts, and leaves texts alone that only look like it", () => {
    expect(textOf({ text: "<table><tr><td>a</td><td>b</td></tr></table>" })).toBe("a\tb");
    expect(textOf({ text: '<div style="text-align: center;">Figure 1<br>more</div>' })).toBe("Figure 1 more");
    for (const text of ["a < b and c > d", "if (x <y) z>", "List<String>"]) expect(textOf({ text })).toBe(text);
    expect(textOf({ html: "a < b <td>c</td>" })).toBe("a < b\tc");
  });

  test.each(["<", "<td>", "<td ", "&#", "<table><tr>", "\\begin{tabular}", "a&", "\\\\"])(
    "of a million of %j is found in a moment",
    (piece) => {
      const text = piece.repeat(1_000_000);
      textOf({ html: text }, { latex: text }, { text }, { latex: `\\begin{tabular}${text}` });
    },
    20_000,
  );
});
