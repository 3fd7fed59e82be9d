import { displayWidth } from "./terminal.js";

/** A text in lines of at most `width` cells, broken between words; a longer word stands alone. Later lines begin with `indent`. */
export function wrapWords(text: string, width: number, indent = ""): string[] {
  return wrapAt(text.split(" "), " ", width, indent);
}

/** The same with parts that must not be broken. */
export function wrapAt(parts: readonly string[], between: string, width: number, indent = ""): string[] {
  const lines: string[] = [];
  for (const part of parts) {
    const last = lines.at(-1);
    const longer = `${last}${between}${part}`;
    if (last === undefined) lines.push(part);
    else if (displayWidth(longer) > width) lines.push(`${indent}${part}`);
    else lines[lines.length - 1] = longer;
  }
  return lines;
}
