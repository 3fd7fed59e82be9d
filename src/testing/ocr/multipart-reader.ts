/** One part of `multipart/form-data`. */
export interface ReceivedPart {
  readonly name: string;
  /** null = a plain field. */
  readonly fileName: string | null;
  readonly bytes: Buffer;
}

const BOUNDARY = /^multipart\/form-data;\s*boundary="?([^";]{1,70})"?$/i;
const NAME = /\bname="([^"]*)"/;
const FILE_NAME = /\bfilename="([^"]*)"/;

/** The parts of a body; null = it is no form, or a broken one. */
export function readMultipart(contentType: string | undefined, body: Buffer): ReceivedPart[] | null {
  const boundary = BOUNDARY.exec(contentType ?? "")?.[1];
  if (boundary === undefined) return null;
  const mark = Buffer.from(`\r\n--${boundary}`);
  // The first boundary stands at the very beginning, all others behind a line end.
  const text = Buffer.concat([Buffer.from("\r\n"), body]);
  const parts: ReceivedPart[] = [];
  let at = text.indexOf(mark);
  while (at === 0 || (at > 0 && parts.length > 0)) {
    const from = at + mark.length;
    if (text.toString("latin1", from, from + 2) === "--") return parts;
    const headEnd = text.indexOf("\r\n\r\n", from);
    const end = text.indexOf(mark, from);
    if (headEnd === -1 || end === -1 || headEnd > end) return null;
    const head = text.toString("latin1", from, headEnd);
    const name = NAME.exec(head)?.[1];
    if (name === undefined) return null;
    parts.push({ name, fileName: FILE_NAME.exec(head)?.[1] ?? null, bytes: text.subarray(headEnd + 4, end) });
    at = end;
  }
  return null;
}
