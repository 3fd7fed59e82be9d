/** Where a command writes, and how much decoration that place can show. */
export interface OutputStream {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

/** undefined: nobody knows. A terminal that was never given a size says 0. */
export function columnsOf({ columns }: OutputStream): number | undefined {
  return columns || undefined;
}

/** What a command sees of the process, so that it can be run inside a test. */
export interface Terminal {
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Calls back on each Ctrl-C; the returned function gives the signal back to Node's default. */
  onInterrupt(listener: () => void): () => void;
}

export const processTerminal: Terminal = {
  stdout: process.stdout,
  stderr: process.stderr,
  stdin: process.stdin,
  env: process.env,
  onInterrupt(listener) {
    process.on("SIGINT", listener);
    process.on("SIGTERM", listener);
    return () => {
      process.off("SIGINT", listener);
      process.off("SIGTERM", listener);
    };
  },
};

export type Paint = (text: string) => string;

export interface Style {
  readonly bold: Paint;
  readonly dim: Paint;
  readonly red: Paint;
  readonly green: Paint;
  readonly yellow: Paint;
  readonly cyan: Paint;
}

function paint(open: number, close: number): Paint {
  return (text) => `\u001b[${open}m${text}\u001b[${close}m`;
}

const COLOURED: Style = {
  bold: paint(1, 22),
  dim: paint(2, 22),
  red: paint(31, 39),
  green: paint(32, 39),
  yellow: paint(33, 39),
  cyan: paint(36, 39),
};

const same: Paint = (text) => text;
const PLAIN: Style = { bold: same, dim: same, red: same, green: same, yellow: same, cyan: same };

/** Colours only on a terminal, and never against NO_COLOR (no-color.org: any non-empty value). */
export function styleOf(stream: OutputStream, env: Terminal["env"]): Style {
  const wanted = stream.isTTY === true && !env.NO_COLOR && env.TERM !== "dumb";
  return wanted ? COLOURED : PLAIN;
}

/** Can lines be drawn over? */
export function canRedraw(stream: OutputStream, env: Terminal["env"]): boolean {
  return stream.isTTY === true && env.TERM !== "dumb";
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: that is what an escape sequence is made of
const ESCAPE = /(\u001b\[[0-9;]*m)/;
const ESCAPES = new RegExp(ESCAPE, "g");
/** East Asian wide characters and emoji take two cells. */
const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|[\u{1f300}-\u{1faff}]/u;

/** Cells a text takes on a terminal, colours not counted. */
export function displayWidth(text: string): number {
  let width = 0;
  for (const character of text.replace(ESCAPES, "")) width += WIDE.test(character) ? 2 : 1;
  return width;
}

/** Cuts a coloured text to `width` cells, so that a drawn line never wraps. */
export function clip(text: string, width: number): string {
  if (displayWidth(text) <= width) return text;
  let used = 0;
  let clipped = "";
  for (const part of text.split(ESCAPE)) {
    if (part.startsWith("\u001b[")) {
      clipped += part;
      continue;
    }
    for (const character of part) {
      const cells = WIDE.test(character) ? 2 : 1;
      if (used + cells > width - 1) return `${clipped}…${text.includes("\u001b[") ? "\u001b[0m" : ""}`;
      used += cells;
      clipped += character;
    }
  }
  return clipped;
}

/**
 * Text of a model or a server, made safe for a terminal: control characters (escape sequences among them)
 * could move the cursor, rename the window or hide text. Line breaks and tabs stay.
 */
export function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, "");
}
