import type { ErrorCode } from "yaml";

/**
 * Syntax errors in our own words: those of the libraries quote the file, where secrets stand.
 * Codes that are not named here share one text.
 */
const YAML_WORDS: Partial<Record<ErrorCode, readonly [problem: string, remedy: string]>> = {
  TAB_AS_INDENT: ["is indented with a tab", "Indent with spaces."],
  BAD_INDENT: ["is not indented like its neighbours", "Give the keys of one mapping the same indentation."],
  MULTIPLE_DOCS: ["begins a second document", "Keep one document in the file: remove the `---` line."],
  BAD_DQ_ESCAPE: [
    'has an escape sequence that YAML doesn\'t have between "…"',
    "Use '…' quotes, or write \\\\ for \\.",
  ],
  MISSING_CHAR: ["is not closed", "Close the quote or bracket that is open here."],
  BAD_SCALAR_START: ["starts with a character that YAML reserves", "Put the value in quotes."],
  BLOCK_AS_IMPLICIT_KEY: ["has a second `: ` in one line, or a wrong indentation", "Put the value in quotes."],
  BLOCK_IN_FLOW: ["has a block inside { } or [ ]", "Write it on one line, or without the brackets."],
  MULTILINE_IMPLICIT_KEY: ["has a key over several lines, or a wrong indentation", "Write `key: value` on one line."],
  KEY_OVER_1024_CHARS: ["has a key of more than 1024 characters", "Shorten it."],
  BAD_DIRECTIVE: ["is a % line that YAML doesn't know", "Remove it, or put the value in quotes."],
  UNEXPECTED_TOKEN: ["is not valid YAML", "Look for a missing colon, quote, bracket or indentation."],
};
const OTHER = ["is not valid YAML", "Correct the line."] as const;

export function yamlWords(code: ErrorCode): readonly [problem: string, remedy: string] {
  return YAML_WORDS[code] ?? OTHER;
}

/** Where strict JSON ends to be JSON; undefined = it is valid. `line` is unknown where Node doesn't tell. */
export function jsonFault(text: string): { readonly line: number | undefined } | undefined {
  try {
    JSON.parse(text);
    return undefined;
  } catch (error) {
    const position = /position (\d+)/.exec(error instanceof Error ? error.message : "")?.[1];
    return { line: position === undefined ? undefined : text.slice(0, Number(position)).split("\n").length };
  }
}
