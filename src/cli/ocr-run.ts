import { OPENAI_FORM } from "../batch/form.js";
import { parseLine } from "../batch/lines.js";
import type { BatchClient, BatchOptions } from "../batch/types.js";
import type { SourceDocument } from "../documents/pages.js";
import { isOcrBody } from "./ocr-body.js";
import { pagePath, pictureEnding, writePage } from "./ocr-page-files.js";
import { pageId } from "./ocr-pages.js";

/** A run over pages as a batch over lines: where the files stand, which lines are meant, and what is written of each page. */

type PageBatch = Pick<BatchOptions, "client" | "form" | "isDue">;

export function pageBatch(
  client: BatchClient,
  folder: string,
  documents: readonly SourceDocument[],
  layout: boolean,
): PageBatch {
  const pages = new Map<string, { document: SourceDocument; page: number }>();
  for (const document of documents) {
    for (let page = 1; page <= document.pageCount; page += 1) {
      pages.set(pageId(document.name, page), { document, page });
    }
  }
  return {
    isDue: (id) => pages.has(id),
    form: {
      ...OPENAI_FORM,
      unit: "page",
      parse(raw) {
        const line = parseLine(raw);
        const place = pages.get(line.id);
        if (line.kind === "broken" || line.request.kind !== "ocr" || place === undefined) return line;
        const { document, page } = place;
        const ending = layout ? pictureEnding(document) : null;
        const pictureAt = ending === null ? {} : { pictureAt: pagePath(folder, document, page, ending) };
        return { ...line, request: { ...line.request, image: document.path, ...pictureAt } };
      },
    },
    client: {
      ...client,
      async call(call, signal) {
        const answer = await client.call(call, signal);
        const place = pages.get(call.parentCallId);
        if (place !== undefined && isOcrBody(answer.body)) {
          // An answer that is paid for goes into OUT, whatever becomes of its files: they are written from there again.
          await writePage(folder, place.document, place.page, answer.body).catch(() => {});
        }
        return answer;
      },
    },
  };
}
