import { type LayoutFaults, middleJson, pageTexts } from "./middle-pages.js";
import { assertServerOptions, UPLOAD_FAULT_NAMES, UPLOAD_OPTION_NAMES, UPLOAD_RANGES } from "./server-options.js";
import {
  startUploadServer,
  type UploadFaults,
  type UploadReply,
  type UploadRequest,
  type UploadServer,
  type UploadServerOptions,
} from "./upload-server.js";

export interface MinerUFaults extends UploadFaults, LayoutFaults {
  /** 409 with this as the error: the task failed. */
  readonly failure?: string;
  /** 400: it takes no file of this kind. */
  readonly refusesType?: boolean;
  /** `/health` answers 503. */
  readonly unhealthy?: boolean;
  /** An answer without middle_json, as some back ends send it: only the list has boxes. */
  readonly noMiddleJson?: boolean;
  /** Neither holds a layout. */
  readonly noLayout?: boolean;
  /** 200 without results. */
  readonly noResults?: boolean;
  /** Texts are empty. */
  readonly empty?: boolean;
}

export interface MinerUServerOptions extends UploadServerOptions {
  readonly faults?: MinerUFaults;
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
  refusesType: true,
  unhealthy: true,
  noMiddleJson: true,
  noLayout: true,
  noResults: true,
  empty: true,
} satisfies Record<keyof MinerUFaults, true>;

export const MINERU_OPTION_NAMES = { ...UPLOAD_OPTION_NAMES, faults: FAULT_NAMES } satisfies Record<
  keyof MinerUServerOptions,
  true | Readonly<Record<string, true>>
>;

const RULES = {
  names: MINERU_OPTION_NAMES,
  owner: "the simulated MinerU server",
  ranges: UPLOAD_RANGES,
};

const TYPES = /\.(?:pdf|jpe?g|png|webp|tiff|bmp|gif|jp2)$/i;

/**
 * MinerU's `mineru-api` (reference-providers §1.2): `POST /file_parse`, which waits for its result, and `GET /health`. Reads
 * nothing of the picture: titles name the file by its digest, the rest follows from the seed.
 *
 * @throws ConfigError with every bad option; the system's error when the port can't be had.
 */
export async function startMinerUServer(options: MinerUServerOptions = {}): Promise<UploadServer<MinerUFaults>> {
  const { seed = 1, pages: pdfPages = 2 } = options;

  function contentList(digest: string, pages: number, met: MinerUFaults): string {
    const blocks = Array.from({ length: pages }, (_, index) => {
      const [title, first] = pageTexts(seed, digest, index + 1);
      return [
        { type: "text", text: title, text_level: 1, bbox: [118, 76, 882, 106], page_idx: index },
        {
          type: "text",
          text: met.errorText ?? first,
          bbox: met.brokenBoxes ? [1, 2, 3] : [118, 126, 882, 202],
          page_idx: index,
        },
      ];
    });
    return JSON.stringify(blocks.flat());
  }

  function parse({ file, fields }: UploadRequest, met: MinerUFaults): UploadReply {
    const { fileName = "", digest = "" } = file ?? {};
    if (!TYPES.test(fileName) || met.refusesType === true)
      return error(400, `Unsupported file type: ${/\.[^.]*$/.exec(fileName)?.[0] ?? fileName}`);
    const { failure } = met;
    if (failure !== undefined) return { status: 409, body: { error: failure, message: "Task execution failed" } };
    const common = { task_id: "t1", status: "completed", backend: "pipeline", error: null, version: "3.4.4" };
    if (met.noResults === true) return { status: 200, body: { ...common, results: {} } };
    const pages = /\.pdf$/i.test(fileName) ? pdfPages : 1;
    const texts = Array.from({ length: pages }, (_, index) => pageTexts(seed, digest, index + 1).join("\n\n"));
    const markdown = met.empty === true ? "" : (met.errorText ?? texts.join("\n\n"));
    const hasMiddle = fields.return_middle_json === "true" && met.noMiddleJson !== true && met.noLayout !== true;
    const hasList = fields.return_content_list === "true" && met.noLayout !== true;
    const result = {
      ...(fields.return_md === "false" ? {} : { md_content: markdown }),
      ...(hasMiddle ? { middle_json: middleJson(seed, digest, pages, met) } : {}),
      ...(hasList ? { content_list: contentList(digest, pages, met) } : {}),
    };
    const stem = fileName.replace(/\.[^.]*$/, "");
    return { status: 200, body: { ...common, results: { [stem]: result } } };
  }

  function reply(request: UploadRequest, met: MinerUFaults): UploadReply {
    const { method, url, file, fileField } = request;
    if (method === "GET" && url.pathname === "/health") {
      if (met.unhealthy === true) return error(503, "the workers are gone");
      const counts = { queued_tasks: 0, processing_tasks: 0, max_concurrent_requests: 3 };
      return { status: 200, body: { status: "healthy", ...counts } };
    }
    if (url.pathname !== "/file_parse") return error(404, "Not Found");
    if (method !== "POST") return error(405, "Method Not Allowed");
    if (file === null || fileField !== "files") {
      return { status: 422, body: { detail: [{ loc: ["body", "files"], msg: "Field required", type: "missing" }] } };
    }
    return parse(request, met);
  }

  const check = (given: unknown) => assertServerOptions(given, RULES);
  return startUploadServer<MinerUFaults>(options, { check, reply, error });
}

function error(status: number, message: string): UploadReply {
  return { status, body: { error: message } };
}
