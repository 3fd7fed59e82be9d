import { msText } from "../../domain/ms-text.js";
import type { OcrLayout, OcrLayoutCompletion } from "../../domain/ocr.js";
import type { OcrAttempt } from "../../ports/transport.js";
import type { HttpClient } from "../http.js";
import type { Refusal, Verdict } from "../openai/classify.js";
import { transientEnd } from "../openai/judge.js";
import type { SourceWire } from "../openai/source-wire.js";
import type { WholeBody } from "../openai/whole-answer.js";
import { answerFacts } from "./answer-facts.js";
import { ask, invalidAnswer } from "./ask.js";
import { layoutOfParts, type MiddlePart } from "./monkey-ocr-answer.js";
import type { TimeLeft } from "./timeout-left.js";
import { listEntries, readZip, type ZipMember } from "./zip.js";

/** Older MonkeyOCR servers put the layout into an archive, to be fetched by a second request. */

/** Bytes of one archive: it holds the document several times over, with its pictures. */
export const MAX_ARCHIVE_BYTES = 200 * 1_024 * 1_024;
const SUFFIX = "_middle.json";
const STATIC = "/static/";

/**
 * The path of an archive behind a source's own address; null = it leads elsewhere. What a server sends is no reason to ask
 * another host, to follow it out of its folder, or to show the key to anyone else.
 */
export function archivePath(downloadUrl: string, { origin }: SourceWire, basePath: string): string | null {
  if (!URL.canParse(downloadUrl, origin)) return null;
  const url = new URL(downloadUrl, origin);
  if (url.origin !== origin || url.username !== "" || url.password !== "") return null;
  const { pathname } = url;
  const encoded = pathname.toLowerCase();
  // Decoded by a careless server, these would lead out of the folder.
  if (encoded.includes("%2e%2e") || encoded.includes("%2f") || encoded.includes("%5c")) return null;
  if (pathname.startsWith(STATIC)) return basePath + pathname;
  return pathname.startsWith(basePath + STATIC) ? pathname : null;
}

export interface ArchiveFetch {
  readonly http: HttpClient;
  readonly attempt: OcrAttempt;
  readonly wire: SourceWire;
  /** Path of the archive, see `archivePath`. */
  readonly path: string;
  readonly left: TimeLeft;
  /** A document whose archive was gone before: it is parsed again once, not for ever. */
  readonly lost: WeakSet<object>;
}

/** Server's temporary folders are emptied: 404 means that this parse is lost, not that the address is wrong. */
function gone(verdict: Verdict, { statusCode }: Refusal): Verdict {
  return statusCode === 404 || statusCode === 410 ? { ...verdict, code: "upstream_error" } : verdict;
}

/** Fetches the archive and reads its layout. */
export async function fetchLayout(fetch: ArchiveFetch): Promise<OcrLayoutCompletion> {
  const { http, attempt, wire, path, left, lost } = fetch;
  const { source, context, image } = attempt;
  const answer = await ask<WholeBody>({
    http,
    source,
    context,
    operation: "ocr_layout",
    wire: { ...wire, path },
    method: "GET",
    body: null,
    maxBytes: MAX_ARCHIVE_BYTES,
    isBinary: true,
    timeoutMs: left.forNextMs(),
    refine: gone,
    read: (body) => body,
  }).catch((error: unknown) => {
    throw lostTwice(error, fetch) ?? error;
  });
  lost.delete(image);
  const layout = await whileWanted(attempt, readArchive(answer, fetch));
  const facts = answerFacts(answer, context, { pageCount: layout.pages.length });
  return { layout, ...facts, latencyMs: left.elapsedMs() };
}

/** The second loss of one document is told as such. */
function lostTwice(error: unknown, { attempt, wire, lost }: ArchiveFetch) {
  const statusCode = (error as { statusCode?: unknown } | null)?.statusCode;
  if (statusCode !== 404 && statusCode !== 410) return undefined;
  if (!lost.has(attempt.image)) {
    lost.add(attempt.image);
    return undefined;
  }
  const answer = { sourceName: attempt.source.name, statusCode, redact: wire.redact, operation: "ocr_layout" };
  return invalidAnswer(answer, "bad_archive", "the archive was gone twice before it could be fetched");
}

async function readArchive(answer: WholeBody, { attempt, left }: ArchiveFetch): Promise<OcrLayout> {
  const { members, problem, entries } = await readZip(answer.bytes, SUFFIX, { isStopped: left.isOver });
  if (left.isOver()) {
    throw transientEnd(answer, "timeout", `no complete answer within ${msText(attempt.source.timeoutMs)} (TIMEOUT_S)`);
  }
  const refuse = (what: string) => {
    const details = { entryCount: entries.count, entries: entries.names.map(answer.redact) };
    return invalidAnswer(
      answer,
      "bad_archive",
      `the archive can't be used: ${what} (${listEntries(entries)})`,
      details,
    );
  };
  if (problem !== null) throw refuse(problem);
  const parts = partsOf(members);
  if (parts === null) throw refuse(`it holds ${members.length} members that end with ${SUFFIX}, and no page is told`);
  return layoutOfParts(answer, parts);
}

const PAGE_FOLDER = /(?:^|\/)page_(\d{1,6})\//;

/** One for the whole document, or one for each page of a split one, whose folder tells the page from 0. */
function partsOf(members: readonly ZipMember[]): MiddlePart[] | null {
  const parts = members.map(({ name, bytes }) => {
    const folder = PAGE_FOLDER.exec(name)?.[1];
    const json = bytes.toString("utf8");
    return folder === undefined ? { json } : { json, page: Number(folder) + 1 };
  });
  return parts.length > 1 && parts.some(({ page }) => page === undefined) ? null : parts;
}

/** Nothing listens while an archive is read: an abort ends the wait at once, and the reading soon after. */
function whileWanted<T>({ context }: OcrAttempt, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const stopListening = context.onAbort(reject);
    work.then(resolve, reject).finally(stopListening);
  });
}
