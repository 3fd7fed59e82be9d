/** Headers by which the HTTP client frames and schedules a request: it refuses them, or the send fails. */
const FRAMING = new Set(["content-length", "transfer-encoding", "keep-alive", "upgrade", "expect"]);
/** With these a request can be sent, but not with a key as their value. */
const NOT_FOR_A_KEY = new Set(["connection", "proxy-connection", "host", "te", "trailer", "content-type"]);

/** false = every call with this header would fail. */
export function canBeSent(header: string): boolean {
  return !FRAMING.has(header.toLowerCase());
}

export function canCarryKey(header: string): boolean {
  return canBeSent(header) && !NOT_FOR_A_KEY.has(header.toLowerCase());
}
