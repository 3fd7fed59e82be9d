import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type BrowserContext, chromium } from "playwright-core";
import { findOrInstall, type WantedBinaries } from "./binaries.js";
import { sharedService } from "./run.js";

/** A real browser for what people look at. */
const CHROMIUM: WantedBinaries = { names: ["chromium"], debianPackage: "chromium", folders: ["/usr/bin"] };

/** It asks nobody for anything: no updates, no accounts, no lists of bad addresses. */
const ALONE = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** The program; null where there is none and none is to be installed (the reason is printed; in CI it is an error). */
export async function browserProgram(): Promise<string | null> {
  const found = await sharedService("chromium", async () => {
    const binaries = findOrInstall(CHROMIUM);
    if (!binaries.ok) throw new Error(binaries.reason);
    return { program: binaries.paths.chromium ?? "", pids: [], folders: [] };
  });
  return found?.program ?? null;
}

export interface TestBrowser {
  readonly context: BrowserContext;
  close(): Promise<void>;
}

/** Without a window and with a fresh profile; it ends with this process at the latest. */
export async function openBrowser(program: string): Promise<TestBrowser> {
  const profile = mkdtempSync(join(tmpdir(), "pgw-browser-"));
  const remove = () => rmSync(profile, { recursive: true, force: true });
  const wish = { executablePath: program, headless: true, args: ALONE };
  try {
    const context = await chromium.launchPersistentContext(profile, wish);
    return { context, close: () => context.close().finally(remove) };
  } catch (error) {
    remove();
    throw error;
  }
}
