import type { LineRequest } from "../batch/kinds/kinds.js";
import type { BatchClient } from "../batch/types.js";
import type { BatchCaller } from "./batch-caller.js";
import { isOcrBody } from "./ocr-body.js";
import { writePageFiles } from "./ocr-files.js";

export interface PagesPlace {
  readonly folder: string;
  /** Where the files of this run lie now; lines call them by their names. */
  readonly files: readonly { readonly name: string; readonly path: string }[];
}

/** A caller for lines of pages: finds their files, and writes those of a page before its line counts as done. */
export function pagesOf(caller: BatchCaller, place: PagesPlace): BatchCaller {
  const { client } = caller.batchOptions;
  return { ...caller, batchOptions: { ...caller.batchOptions, client: pageClient(client, place) } };
}

function pageClient(client: BatchClient, { folder, files }: PagesPlace): BatchClient {
  const paths = new Map(files.map(({ name, path }) => [name, path]));
  return {
    ...client,
    async call(call, signal) {
      const request = placed(call.request, paths);
      const answer = await client.call({ ...call, request }, signal);
      const { body } = answer;
      if (call.request.kind === "ocr" && isOcrBody(body)) {
        // What can't be written now is made from the line at the end, where it is told as well.
        await writePageFiles(folder, { name: call.request.image }, call.request.page ?? 1, body).catch(() => {});
      }
      return answer;
    },
  };
}

function placed(request: LineRequest, paths: ReadonlyMap<string, string>): LineRequest {
  return request.kind === "ocr" ? { ...request, image: paths.get(request.image) ?? request.image } : request;
}
