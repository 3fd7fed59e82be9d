import { STATUS_CODES } from "node:http";

export type ResponseHeaders = Readonly<Record<string, string>>;

export const NO_HEADERS: ResponseHeaders = {};

export function statusLine(status: number): string {
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "Unknown"}\r\n`;
}

function headerLines(headers: ResponseHeaders): string {
  let lines = "";
  for (const name in headers) lines += `${name}: ${headers[name]}\r\n`;
  return lines;
}

/** Everything up to and including the empty line of a response with a known length. */
export function jsonHead(status: number, bodyBytes: number, headers: ResponseHeaders, keepAlive: boolean): string {
  return `${statusLine(status)}content-type: application/json\r\n${headerLines(headers)}content-length: ${bodyBytes}\r\nconnection: ${keepAlive ? "keep-alive" : "close"}\r\n\r\n`;
}

export function jsonResponse(status: number, body: string, headers: ResponseHeaders, keepAlive: boolean): string {
  return jsonHead(status, Buffer.byteLength(body), headers, keepAlive) + body;
}

export function eventStreamHead(headers: ResponseHeaders, keepAlive: boolean): string {
  return `${statusLine(200)}content-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\n${headerLines(headers)}transfer-encoding: chunked\r\nconnection: ${keepAlive ? "keep-alive" : "close"}\r\n\r\n`;
}

/** One HTTP chunk. */
export function httpChunk(text: string): string {
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
}

export const LAST_CHUNK = "0\r\n\r\n";

/** The error envelope of the chat API. */
export function errorBody(message: string, type: string, code: string): string {
  return JSON.stringify({ error: { message, type, param: null, code } });
}
