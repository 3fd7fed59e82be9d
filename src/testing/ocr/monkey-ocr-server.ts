import { type LayoutFaults, middleJson, pageTexts } from "./middle-pages.js";
import { type BrokenArchive, monkeyArchive } from "./monkey-ocr-archive.js";
import { assertServerOptions, UPLOAD_FAULT_NAMES, UPLOAD_OPTION_NAMES, UPLOAD_RANGES } from "./server-options.js";
import {
  startUploadServer,
  type UploadFaults,
  type UploadReply,
  type UploadRequest,
  type UploadServer,
  type UploadServerOptions,
} from "./upload-server.js";

export interface MonkeyOcrFaults extends UploadFaults, LayoutFaults {
  /** `/ocr/*` answers 200 with `success: false` and this, `/parse*` 500 with this. */
  readonly failure?: string;
  /** `/health` says `model_loaded: false`, and nothing can be read. */
  readonly unready?: boolean;
  /** An older build: `return_type` is ignored, so that the answer only tells where an archive is. */
  readonly oldBuild?: boolean;
  /** The answer lacks the layout: a placeholder instead of it, or an archive without it. */
  readonly noMiddleJson?: boolean;
  /** The layout is no JSON. */
  readonly badJson?: boolean;
  /** Texts are empty. */
  readonly empty?: boolean;
  readonly archive?: BrokenArchive;
  /** Archives are gone when they are asked for. */
  readonly archiveGone?: boolean;
  /** Told as `download_url`. */
  readonly archiveUrl?: string;
  /** The server answers a request for an archive with a redirect to there. */
  readonly archiveRedirect?: string;
}

export interface MonkeyOcrServerOptions extends UploadServerOptions {
  readonly faults?: MonkeyOcrFaults;
}

const FAULT_NAMES = {
  ...UPLOAD_FAULT_NAMES,
  nan: true,
  brokenBoxes: true,
  merged: true,
  emptyGroup: true,
  noPageSize: true,
  errorText: true,
  failure: true,
  unready: true,
  oldBuild: true,
  noMiddleJson: true,
  badJson: true,
  empty: true,
  archive: true,
  archiveGone: true,
  archiveUrl: true,
  archiveRedirect: true,
} satisfies Record<keyof MonkeyOcrFaults, true>;

export const MONKEY_OCR_OPTION_NAMES = { ...UPLOAD_OPTION_NAMES, faults: FAULT_NAMES } satisfies Record<
  keyof MonkeyOcrServerOptions,
  true | Readonly<Record<string, true>>
>;

const RULES = {
  names: MONKEY_OCR_OPTION_NAMES,
  owner: "the simulated MonkeyOCR server",
  ranges: UPLOAD_RANGES,
  choices: { archive: ["cut", "crc", "encrypted", "traversal", "bomb", "overlap", "none"] },
};

const TYPES = /\.(?:pdf|jpe?g|png)$/i;
const TASKS: ReadonlySet<string> = new Set(["text", "formula", "table"]);
const ALLOWED = "Allowed: .pdf, .jpg, .jpeg, .png";
const JSON_TYPES: Readonly<Record<string, string>> = {
  middle_json: "middle.json",
  content_list_json: "content_list.json",
};

/**
 * A MonkeyOCR API server (reference-providers §1.1): `/ocr/text|formula|table`, `/parse`, `/parse/split`, `/health`,
 * `/static/<zip>`. Reads nothing of the picture: titles name the file by its digest, the rest follows from the seed.
 *
 * @throws ConfigError with every bad option; the system's error when the port can't be had.
 */
export async function startMonkeyOcrServer(
  options: MonkeyOcrServerOptions = {},
): Promise<UploadServer<MonkeyOcrFaults>> {
  const { seed = 1, pages: pdfPages = 2 } = options;
  const archives = new Map<string, { readonly archive: Buffer; readonly met: MonkeyOcrFaults }>();

  function task(name: string, request: UploadRequest, met: MonkeyOcrFaults): UploadReply {
    const failure = failureOf(request, met);
    const outcome =
      failure === null ? { success: true, content: textOf(name, request, met) } : { success: false, content: "" };
    const message = failure === null ? "Text extraction completed successfully" : `OCR task failed: ${failure}`;
    return { status: 200, body: { ...outcome, task_type: name, message } };
  }

  function textOf(name: string, request: UploadRequest, met: MonkeyOcrFaults): string {
    if (met.empty === true) return " \n";
    const pages = pagesOf(request).map((page) => pageTexts(seed, request.file?.digest ?? "", page));
    // A page that fails stands in the middle of the others.
    const texts = pages.map((lines, index) =>
      met.errorText !== undefined && index === 0 ? met.errorText : lines.join("\n"),
    );
    return name === "text" ? texts.join("\n\n") : `\\begin{${name}}${texts.length}\\end{${name}}`;
  }

  function pagesOf({ file }: UploadRequest): number[] {
    const count = /\.pdf$/i.test(file?.fileName ?? "") ? pdfPages : 1;
    return Array.from({ length: count }, (_, index) => index + 1);
  }

  function parse(request: UploadRequest, met: MonkeyOcrFaults, isSplit: boolean): UploadReply {
    const failure = failureOf(request, met);
    if (failure !== null) return error(500, `Parsing failed: ${failure}`);
    const { digest = "" } = request.file ?? {};
    const pages = pagesOf(request);
    const json = met.badJson === true ? '{"pdf_info":[' : middleJson(seed, digest, pages.length, met);
    const kind = isSplit ? "split" : "standard";
    const common = { success: true, output_dir: `/tmp/monkeyocr_parse_${digest.slice(0, 8)}` };
    const message = `PDF parsing (${kind}) completed successfully`;
    const returnType = request.url.searchParams.get("return_type") ?? "zip_all";
    if (met.oldBuild === true || returnType === "zip_all") {
      const archive = monkeyArchive({ json, pages: pages.length, isSplit, fault: archiveFault(met) });
      const stem = (request.file?.fileName ?? "").replace(/\.[^.]*$/, "");
      const url = `/static/${stem}_${isSplit ? "split" : "parsed"}_1718000000000_${digest.slice(0, 8)}.zip`;
      archives.set(url, { archive, met });
      const nulls = met.oldBuild === true ? {} : { content: null, content_type: null };
      return {
        status: 200,
        body: { ...common, message, files: [`${stem}.md`], download_url: met.archiveUrl ?? url, ...nulls },
      };
    }
    const kindOfFile = JSON_TYPES[returnType];
    const placeholder = kindOfFile === undefined ? `Unknown return_type: ${returnType}` : `No ${kindOfFile} file found`;
    const isThere = kindOfFile !== undefined && met.noMiddleJson !== true;
    const content = isThere
      ? { content: returnType === "middle_json" ? json : listOf(digest, pages), content_type: "application/json" }
      : { content: placeholder, content_type: "text/plain" };
    return {
      status: 200,
      body: { ...common, message: `${message} - returning ${returnType}`, files: null, download_url: null, ...content },
    };
  }

  /** Without boxes, as this server writes it. */
  function listOf(digest: string, pages: readonly number[]): string {
    const titles = pages.map((page) => ({
      type: "text",
      text: pageTexts(seed, digest, page)[0],
      text_level: 1,
      page_idx: page - 1,
    }));
    return JSON.stringify(titles);
  }

  function reply(request: UploadRequest, met: MonkeyOcrFaults): UploadReply {
    const { method, url } = request;
    const { pathname } = url;
    if (method === "GET" && pathname === "/")
      return { status: 200, body: { message: "MonkeyOCR API is running", version: "1.0.0" } };
    if (method === "GET" && pathname === "/health") {
      return { status: 200, body: { status: "healthy", model_loaded: met.unready !== true } };
    }
    if (method === "GET" && pathname.startsWith("/static/")) return download(pathname);
    const name = /^\/ocr\/(\w+)$/.exec(pathname)?.[1] ?? "";
    const isParse = pathname === "/parse" || pathname === "/parse/split";
    if (!isParse && !TASKS.has(name)) return error(404, "Not Found");
    if (method !== "POST") return error(405, "Method Not Allowed");
    if (request.file === null || request.fileField !== "file") {
      return { status: 422, body: { detail: [{ loc: ["body", "file"], msg: "Field required", type: "missing" }] } };
    }
    return isParse ? parse(request, met, pathname === "/parse/split") : task(name, request, met);
  }

  /** Meets the faults that its parse has met. */
  function download(path: string): UploadReply {
    const found = archives.get(decodeURIComponent(path));
    if (found === undefined || found.met.archiveGone === true) return error(404, "Not Found");
    const { archiveRedirect: location } = found.met;
    return location === undefined
      ? { status: 200, body: found.archive }
      : { status: 302, body: {}, headers: { location } };
  }

  const check = (given: unknown) => assertServerOptions(given, RULES);
  return startUploadServer<MonkeyOcrFaults>(options, { check, reply, error });
}

function error(status: number, detail: string): UploadReply {
  return { status, body: { detail } };
}

/** What the server would say; null = it can read the file. */
function failureOf({ file }: UploadRequest, { unready, failure }: MonkeyOcrFaults): string | null {
  const { fileName = "" } = file ?? {};
  if (!TYPES.test(fileName)) return `400: Unsupported file type: ${/\.[^.]*$/.exec(fileName)?.[0] ?? ""}. ${ALLOWED}`;
  return unready === true ? "500: Model not initialized" : (failure ?? null);
}

function archiveFault({ archive, noMiddleJson }: MonkeyOcrFaults): BrokenArchive | undefined {
  return noMiddleJson === true ? "none" : archive;
}
