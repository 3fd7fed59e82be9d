import type { CancelTimer, Runtime } from "../ports/runtime.js";
import { canRedraw, clip, columnsOf, type OutputStream, type Terminal } from "./terminal.js";

const REDRAW_MS = 150;
const PLAIN_LINE_MS = 5_000;
const DEFAULT_COLUMNS = 80;

export interface LiveViewOptions {
  readonly stream: OutputStream;
  readonly env: Terminal["env"];
  readonly runtime: Pick<Runtime, "setTimer">;
  /** The block drawn over itself on a terminal; a line longer than `width` cells is cut. */
  readonly block: (width: number) => readonly string[];
  /** The line written now and then where nothing can be drawn over. */
  readonly line: () => string;
  /** How often either is shown. Default: drawn several times a second, written every 5 s. */
  readonly everyMs?: number;
}

export interface LiveView {
  /** Writes lines that stay, above the block. */
  note(text: string): void;
  /** Draws the last state and leaves it on the screen. */
  stop(): void;
}

/** Shows something that changes: redrawn in place on a terminal, a plain line every 5 s elsewhere. */
export function startLiveView(options: LiveViewOptions): LiveView {
  const { stream, runtime } = options;
  const redraws = canRedraw(stream, options.env);
  let drawnLines = 0;
  let cancel: CancelTimer | undefined;
  let stopped = false;

  const erase = (): string => (drawnLines > 0 ? `\u001b[${drawnLines}A\u001b[0J` : "");
  const draw = (before = ""): void => {
    const width = (columnsOf(stream) ?? DEFAULT_COLUMNS) - 1;
    const lines = options.block(width).map((line) => clip(line, width));
    stream.write(`${erase()}${before}${lines.map((line) => `${line}\n`).join("")}`);
    drawnLines = lines.length;
  };
  const show = (): void => {
    if (redraws) draw();
    else stream.write(`${options.line()}\n`);
  };
  const schedule = (): void => {
    cancel = runtime.setTimer(options.everyMs ?? (redraws ? REDRAW_MS : PLAIN_LINE_MS), () => {
      show();
      schedule();
    });
  };

  if (redraws) draw();
  schedule();
  return {
    note(text) {
      if (redraws && !stopped) draw(`${text}\n`);
      else stream.write(`${text}\n`);
    },
    stop() {
      if (stopped) return;
      stopped = true;
      cancel?.();
      show();
    },
  };
}
