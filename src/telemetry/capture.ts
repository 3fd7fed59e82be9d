import { createHash } from "node:crypto";
import type { CallRecord } from "../domain/record.js";
import type { CaptureMode } from "../ports/recorder.js";
import { cleanText, limitText, redactText } from "./text.js";

/** Makes of a raw record what may be stored. Called by the writer, off the call path. */
export type RecordRenderer = (record: CallRecord) => CallRecord;

export interface CaptureOptions {
  readonly capture: CaptureMode;
  /** Masks every known secret in a text. */
  readonly redact?: ((text: string) => string) | undefined;
}

type TextTreatment = (text: string | null) => string | null;

/** Calls of a program have many texts in common, such as their sampling: what was made of the last one holds for the next. */
function remembering(treat: TextTreatment): TextTreatment {
  let last: string | null = null;
  let treated: string | null = null;
  return (text) => {
    if (text === last) return treated;
    treated = treat(text);
    last = text;
    return treated;
  };
}

/**
 * Spec 05 "Capture": `full` keeps texts, `digest` keeps hash and length, `none` keeps nothing of them;
 * with the last two `error` keeps label, status, provider code and request id, but not the body.
 * Every text is cleaned, redacted and limited to 64 KiB.
 */
export function createRecordRenderer(options: CaptureOptions): RecordRenderer {
  const { capture, redact } = options;
  const finish: TextTreatment = (text) => {
    if (text === null || text === undefined) return null;
    const clean = cleanText(text);
    return redact === undefined ? limitText(clean) : redactText(clean, redact);
  };
  const content = contentTreatment(capture, finish);
  const [sessionId, parentCallId, modelReported] = [remembering(finish), remembering(finish), remembering(finish)];
  const [sampling, finishReason] = [remembering(finish), remembering(finish)];
  return (record) => {
    const texts = {
      sessionId: sessionId(record.sessionId),
      parentCallId: parentCallId(record.parentCallId),
      messages: content(record.messages),
      response: content(record.response),
      thinking: content(record.thinking),
      error: finish(capture === "full" ? record.error : errorWithoutBody(record)),
      modelReported: modelReported(record.modelReported),
      sampling: sampling(record.sampling),
      finishReason: finishReason(record.finishReason),
      route: finish(capture === "full" ? record.route : routeWithoutBodies(record.route)),
    };
    return isUnchanged(record, texts) ? record : { ...record, ...texts };
  };
}

/** Everything is kept, and made safe for a store: for records that nobody has rendered. */
export const renderSafely: RecordRenderer = createRecordRenderer({ capture: "full" });

type Texts = Pick<
  CallRecord,
  | "sessionId"
  | "parentCallId"
  | "messages"
  | "response"
  | "thinking"
  | "error"
  | "modelReported"
  | "sampling"
  | "finishReason"
  | "route"
>;

/** Copying a record of over thirty fields costs more than comparing ten: most need no change. */
function isUnchanged(record: CallRecord, texts: Texts): boolean {
  return (
    record.messages === texts.messages &&
    record.response === texts.response &&
    record.thinking === texts.thinking &&
    record.error === texts.error &&
    record.sampling === texts.sampling &&
    record.route === texts.route &&
    record.sessionId === texts.sessionId &&
    record.parentCallId === texts.parentCallId &&
    record.modelReported === texts.modelReported &&
    record.finishReason === texts.finishReason
  );
}

function contentTreatment(capture: CaptureMode, finish: TextTreatment): TextTreatment {
  if (capture === "full") return finish;
  if (capture === "none") return () => null;
  return (text) =>
    text === null || text === undefined
      ? null
      : `sha256:${createHash("sha256").update(text).digest("hex")} ${text.length} chars`;
}

const BODY_SEPARATOR = " | ";
const PROVIDER_CODE = /"(?:code|error_code|err_code)"\s*:\s*"?([\w.-]{1,64})"?/;
const PROVIDER_TYPE = /"type"\s*:\s*"([\w.-]{1,64})"/;
const PROVIDER_REQUEST_ID = /"(?:request_id|requestId|req_id|trace_id|log_id)"\s*:\s*"([\w.:-]{1,128})"/;

/** A message is `{source} {label}: {status} | {body digest}`; the body may quote the prompt, the facts may not. */
function errorWithoutBody({ error, outcome, errorCode }: CallRecord): string | null {
  if (error === null) return null;
  // An invalid result's message quotes the model's own output.
  if (outcome === "invalid") return `result invalid (${errorCode ?? "schema"})`;
  const cut = error.indexOf(BODY_SEPARATOR);
  if (cut < 0) return error;
  const body = error.slice(cut + BODY_SEPARATOR.length);
  const code = PROVIDER_CODE.exec(body)?.[1] ?? PROVIDER_TYPE.exec(body)?.[1] ?? errorCode;
  const requestId = PROVIDER_REQUEST_ID.exec(body)?.[1];
  const facts = [code && `code ${code}`, requestId && `request id ${requestId}`].filter(Boolean).join(", ");
  return facts === "" ? error.slice(0, cut) : `${error.slice(0, cut)} (${facts})`;
}

/** `route` quotes the last error of a source; without bodies only its own words stay. */
function routeWithoutBodies(route: string | null): string | null {
  if (route === null || !route.includes('"message"')) return route;
  try {
    return JSON.stringify(JSON.parse(route), (key, value) =>
      key === "message" && typeof value === "string" ? value.split(BODY_SEPARATOR, 1)[0] : value,
    );
  } catch {
    return null;
  }
}
