import { existsSync, readFileSync } from "node:fs";
import { afterEach } from "vitest";
import { makeFolder } from "../cli-harness.js";

/** What tests of the command share. */

/** Closed after each test of the file, the last first; `folder` makes one that is. */
export function openInTests() {
  const open: (() => unknown)[] = [];
  afterEach(async () => {
    for (const close of open.splice(0).toReversed()) await close();
  });
  const folder = (): string => {
    const made = makeFolder();
    open.push(() => made.remove());
    return made.path;
  };
  return { open, folder };
}

export function envOf(baseUrl: string, transport: string, more: Record<string, string> = {}): Record<string, string> {
  return {
    OCR__SRV__1__BASE_URL: baseUrl,
    OCR__SRV__1__API_KEY: "none",
    OCR__SRV__1__MODEL: "reader-model",
    OCR__SRV__1__TRANSPORT: transport,
    OCR__RETRY__BACKOFF_BASE_S: "0.01",
    OCR__RETRY__BACKOFF_MAX_S: "0.05",
    ...more,
  };
}

export interface OutLine {
  readonly custom_id: string;
  readonly response: { readonly body: { readonly dropped_elements?: number } } | null;
  readonly error: { readonly code: string; readonly message: string } | null;
}

export function linesOf(path: string): OutLine[] {
  if (!existsSync(path)) return [];
  return readFileSync(path, "utf8")
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as OutLine);
}
