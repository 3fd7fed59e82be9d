import { Worker } from "node:worker_threads";

/** What the thread says of one question; see pdf-worker.js. */
export interface PdfAnswer {
  readonly pageCount?: number;
  readonly png?: Uint8Array;
  readonly trouble?: "no_driver" | "failed" | "lost";
  /** In the drawing program's own words. */
  readonly reason?: string;
}

export type PdfQuestion =
  | { readonly kind: "open"; readonly file: number; readonly bytes: Buffer }
  | { readonly kind: "draw"; readonly file: number; readonly page: number; readonly dpi: number }
  | { readonly kind: "close"; readonly file: number };

/** The thread that draws: whatever it does, nothing else waits for it. It keeps the process alive only while it is asked. */
export interface PdfThread {
  /** Never rejects: a thread that ends answers `lost`. */
  ask(question: PdfQuestion): Promise<PdfAnswer>;
  /** At once, whatever it does. */
  end(): void;
  readonly isGone: boolean;
}

export function startPdfThread(): PdfThread {
  const worker = new Worker(new URL("./pdf-worker.js", import.meta.url), { name: "polygateway-pdf" });
  worker.unref();
  const waiting = new Map<number, (answer: PdfAnswer) => void>();
  let lastId = 0;
  let isGone = false;
  let why = "the drawing program has ended";

  function leave(): void {
    isGone = true;
    for (const resolve of waiting.values()) resolve({ trouble: "lost", reason: why });
    waiting.clear();
  }
  worker.on("message", ({ id, ...answer }: PdfAnswer & { readonly id: number }) => {
    waiting.get(id)?.(answer);
    waiting.delete(id);
    if (waiting.size === 0) worker.unref();
  });
  worker.on("error", (error: unknown) => {
    why = error instanceof Error ? error.message : String(error);
  });
  worker.once("exit", leave);
  return {
    ask(question) {
      if (isGone) return Promise.resolve({ trouble: "lost", reason: why });
      return new Promise((resolve) => {
        const id = ++lastId;
        waiting.set(id, resolve);
        worker.ref();
        // Handed over, not copied: the file's bytes are wanted there alone.
        worker.postMessage({ id, ...question }, question.kind === "open" ? [question.bytes.buffer as ArrayBuffer] : []);
      });
    },
    end() {
      leave();
      void worker.terminate();
    },
    get isGone() {
      return isGone;
    },
  };
}
