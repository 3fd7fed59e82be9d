import { expect, test } from "vitest";
import { tableText } from "./html-table.js";

test.each([
  ["<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td> 2 </td></tr></table>", "a\tb\n1\t2"],
  [
    "<table>\n<tbody>\n<tr>\n<td>x &amp; y</td>\n<td colspan='2'>&lt;z&gt; &#233; &#x4e2d;</td>\n</tr></tbody></table>",
    "x & y\t<z> é 中",
  ],
  ["<tr><td></td><td>2</td><td></td></tr>", "\t2\t"],
  ["<TR><TD>a<br/>b</TD></TR>", "a\nb"],
  ["<td><i>a</i> <i>b</i></td>", "a b"],
  ["no table at all", "no table at all"],
  ["<td>cut <tr", "cut <tr"],
  ["&#0;&#99999999;&unknown;", "&#0;&#99999999;&unknown;"],
])("%j", (html, text) => {
  expect(tableText(html)).toBe(text);
});

test("takes linear time over what was made to slow it down", () => {
  expect(tableText(`<td${" ".repeat(500_000)}`).length).toBeLessThan(10);
  expect(tableText("</td>".repeat(200_000))).toBe("");
  expect(tableText("<".repeat(500_000)).length).toBe(500_000);
});
