import { expect, test } from "vitest";
import { contentOf } from "./element-content.js";

test.each([
  ["table", "<table><tr><td>1</td></tr></table>", { html: "<table><tr><td>1</td></tr></table>" }],
  [
    "table",
    "<div style='text-align: center;'><html><body><table>",
    { html: "<div style='text-align: center;'><html><body><table>" },
  ],
  ["table", "\\begin{tabular}{ll}1&2\\end{tabular}", { latex: "\\begin{tabular}{ll}1&2\\end{tabular}" }],
  ["table", "| a | b |", { text: "| a | b |" }],
  ["formula", "E=mc^2", { latex: "E=mc^2" }],
  ["text", "<table>", { text: "<table>" }],
  ["image", '<div style="text-align: center;"><img src="imgs/a.jpg" alt="Image" width="20%" /></div>', {}],
  ["image", "![img-0.jpeg](img-0.jpeg)", {}],
  ["chart", "![img-0.jpeg](img-0.jpeg)", {}],
  ["image", "![a](b)\nwith words", { text: "![a](b)\nwith words" }],
  ["image", "Text on a seal", { text: "Text on a seal" }],
  ["text", 5, {}],
] as const)("%s with %j is %j", (type, content, fields) => {
  expect(contentOf(type, content)).toEqual(fields);
});
