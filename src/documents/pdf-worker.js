// The thread that draws pages of PDFs, one message at a time: nothing else of the process waits for it. Loaded by path,
// hence plain JavaScript.
import { parentPort } from "node:worker_threads";
import { encodePng } from "./png.js";

/**
 * `file` numbers an open PDF, `id` a question.
 * @typedef {{ id: number, file: number } & ({ kind: "open", bytes: Uint8Array } | { kind: "draw", page: number, dpi: number } | { kind: "close" })} Question
 *
 * `lost`: the drawing program has ended, and whatever was open with it.
 * @typedef {{ id: number, pageCount?: number, png?: Uint8Array, trouble?: "no_driver" | "failed" | "lost", reason?: string }} Answer
 */

const port = /** @type {import("node:worker_threads").MessagePort} */ (parentPort);
const POINTS_PER_INCH = 72;
/** A poster at 200 dpi would take gigabytes: larger pages are drawn more coarsely. */
const MAX_PIXELS = 40_000_000;

/** @type {Promise<import("@hyzyla/pdfium").PDFiumLibrary> | undefined} loaded when the first PDF is opened */
let library;
/** @type {Map<number, import("@hyzyla/pdfium").PDFiumDocument>} */
const files = new Map();
/** @type {Promise<void>} */
let turn = Promise.resolve();

port.on("message", (/** @type {Question} */ question) => {
  turn = turn.then(() => answer(question));
});

/** @param {Question} question */
async function answer(question) {
  const { id } = question;
  try {
    const said = await handle(question);
    port.postMessage({ id, ...said }, said.png === undefined ? [] : [said.png.buffer]);
  } catch (error) {
    port.postMessage({ id, trouble: hasAborted(error) ? "lost" : "failed", reason: words(error) });
  }
}

/**
 * @param {Question} question
 * @returns {Promise<Omit<Answer, "id">>}
 */
async function handle(question) {
  if (question.kind === "open") return open(question.file, question.bytes);
  const document = files.get(question.file);
  if (question.kind === "draw") return document === undefined ? { trouble: "lost" } : draw(document, question);
  files.delete(question.file);
  document?.destroy();
  return {};
}

/**
 * @param {number} file
 * @param {Uint8Array} bytes
 * @returns {Promise<Omit<Answer, "id">>}
 */
async function open(file, bytes) {
  /** @type {import("@hyzyla/pdfium").PDFiumLibrary} */
  let engine;
  try {
    library ??= import("@hyzyla/pdfium").then(({ PDFiumLibrary }) => PDFiumLibrary.init());
    engine = await library;
  } catch (error) {
    library = undefined;
    return { trouble: "no_driver", reason: words(error) };
  }
  const document = await engine.loadDocument(bytes);
  const pageCount = document.getPageCount();
  if (pageCount === 0) document.destroy();
  else files.set(file, document);
  return { pageCount };
}

/**
 * @param {import("@hyzyla/pdfium").PDFiumDocument} document
 * @param {{ page: number, dpi: number }} wish
 */
async function draw(document, { page: number, dpi }) {
  const page = document.getPage(number - 1);
  const { originalWidth, originalHeight } = page.getOriginalSize();
  const largest = Math.sqrt(MAX_PIXELS / Math.max(1, originalWidth * originalHeight));
  const bitmap = await page.render({ scale: Math.min(dpi / POINTS_PER_INCH, largest), render: "bitmap" });
  if (bitmap.width < 1 || bitmap.height < 1) throw new Error("it has no area");
  const png = encodePng(bitmap.data, bitmap.width, bitmap.height);
  // Of its own memory, so that it can be handed over.
  return { png: png.buffer.byteLength === png.length ? png : new Uint8Array(png) };
}

/**
 * WebAssembly that has ended itself, or its memory: nothing it held can be used again.
 *
 * @param {unknown} error
 */
function hasAborted(error) {
  const isEnd = error instanceof Error && error.name === "RuntimeError";
  return isEnd || /abort|allocate memory|enlarge memory/i.test(words(error));
}

/**
 * The library's own words, in one line.
 *
 * @param {unknown} error
 */
function words(error) {
  const text = error instanceof Error ? error.message : String(error);
  return (text.split("\n", 1)[0] ?? "").slice(0, 200);
}
