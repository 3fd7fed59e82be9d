/** Ends a line of text. */
const LINE_ENDS = new Set(["/tr", "/p", "/li", "/caption", "br"]);
const CELL = /^(\/?)t[dh]$/;
const LONGEST_NAME = 10;

/** A table that a server gave as HTML, for people: a line for each row, cells between tabs. Never throws; linear in time. */
export function tableText(html: string): string {
  let text = "";
  let isAfterCell = false;
  for (const { before, name } of partsOf(html.replace(/\s+/g, " "))) {
    text += before.replace(ENTITY, character);
    const [isCell, isEnd] = CELL.exec(name) ?? [];
    if (isCell !== undefined) {
      if (isEnd === "" && isAfterCell) text += "\t";
      isAfterCell = isEnd !== "";
    } else if (LINE_ENDS.has(name)) {
      text += "\n";
      isAfterCell = false;
    }
  }
  return text
    .replace(/ +/g, " ")
    .split("\n")
    .map((line) => line.replace(/^ | $/g, "").replace(/ ?\t ?/g, "\t"))
    .filter((line) => line !== "")
    .join("\n");
}

/** Texts with the name of the tag that follows each; what never ends is no tag. */
function* partsOf(html: string): Generator<{ before: string; name: string }> {
  let at = 0;
  for (;;) {
    const start = html.indexOf("<", at);
    const end = start < 0 ? -1 : html.indexOf(">", start);
    if (end < 0) {
      yield { before: html.slice(at), name: "" };
      return;
    }
    const [name = ""] = /^\/?[a-z]+/i.exec(html.slice(start + 1, Math.min(end, start + 1 + LONGEST_NAME))) ?? [];
    yield { before: html.slice(at, start), name: name.toLowerCase() };
    at = end + 1;
  }
}

const ENTITY = /&(?:#(\d{1,7})|#x([\da-f]{1,6})|(amp|lt|gt|quot|apos|nbsp));/gi;
const NAMED: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: " " };
const LAST_CODE_POINT = 0x10ffff;

function character(whole: string, decimal?: string, hex?: string, name?: string): string {
  if (name !== undefined) return NAMED[name.toLowerCase()] ?? whole;
  const code = decimal === undefined ? Number.parseInt(hex ?? "", 16) : Number(decimal);
  return code > 0 && code <= LAST_CODE_POINT ? String.fromCodePoint(code) : whole;
}
