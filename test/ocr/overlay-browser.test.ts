import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type OverlayPage, overlayHtml } from "../../src/documents/overlay.js";
import { createPageReader } from "../../src/documents/pages.js";
import type { OcrElement } from "../../src/domain/ocr.js";
import { startMinerUServer } from "../../src/testing/ocr/mineru-server.js";
import { startCli } from "../cli-harness.js";
import { browserProgram, openBrowser, type TestBrowser } from "../services/browser.js";
import { envOf, openInTests } from "./command.js";
import { pdfOf } from "./pictures.js";

/** The HTML file of `polygateway ocr --layout`, as a person sees it: in a real browser. */

const program = await browserProgram();

const { open, folder } = openInTests();

/** What a page did beside being shown. */
interface Watched {
  readonly page: Page;
  readonly complaints: string[];
  readonly requests: string[];
}

interface Rect {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

interface ShownSection {
  readonly heading: string;
  /** Of the picture, or of the sheet where there is none. */
  readonly sheet: Rect | null;
  readonly pixels: number;
  readonly boxes: readonly Rect[];
  readonly texts: readonly string[];
}

/** Runs in the page. */
const SECTIONS_SHOWN = `
  const rectOf = (element) => {
    const { left, top, width, height } = element.getBoundingClientRect();
    return { left, top, width, height };
  };
  [...document.querySelectorAll("section")].map((section) => {
    const picture = section.querySelector("img");
    const sheet = picture ?? section.querySelector(".sheet");
    return {
      heading: section.querySelector("h2").innerText,
      sheet: sheet === null ? null : rectOf(sheet),
      pixels: picture?.naturalWidth ?? 0,
      boxes: [...section.querySelectorAll(".sheet a")].map(rectOf),
      texts: [...section.querySelectorAll("li")].map((item) => item.innerText),
    };
  })`;

function sectionsOf(page: Page): Promise<ShownSection[]> {
  return page.evaluate<ShownSection[]>(SECTIONS_SHOWN);
}

/** The page's own width; more than the window's = it must be scrolled sideways. */
function widthOf(page: Page): Promise<number> {
  return page.evaluate<number>("document.documentElement.scrollWidth");
}

function expectBoxes({ boxes, sheet }: ShownSection, elements: readonly Pick<OcrElement, "bbox">[]): void {
  expect(boxes).toHaveLength(elements.length);
  const { left, top, width, height } = sheet!;
  for (const [index, { bbox }] of elements.entries()) {
    const [x0, y0, x1, y1] = bbox;
    const box = boxes[index]!;
    const seen = [box.left, box.top, box.left + box.width, box.top + box.height];
    const wanted = [left + x0 * width, top + y0 * height, left + x1 * width, top + y1 * height];
    for (const [side, place] of seen.entries()) {
      expect(Math.abs(place - wanted[side]!), `side ${side} of box ${index + 1}`).toBeLessThan(1);
    }
  }
}

describe.skipIf(program === null)("the overlay in a browser", () => {
  let browser: TestBrowser;
  beforeAll(async () => {
    browser = await openBrowser(program!);
  });
  afterAll(() => browser.close());

  async function visit(path: string): Promise<Watched> {
    const page = await browser.context.newPage();
    open.push(() => page.close());
    const complaints: string[] = [];
    const requests: string[] = [];
    page.on("console", (message) => complaints.push(message.text()));
    page.on("pageerror", (error) => complaints.push(String(error)));
    page.on("requestfailed", (request) => complaints.push(`not loaded: ${request.url()}`));
    page.on("dialog", (dialog) => {
      complaints.push(`dialog: ${dialog.message()}`);
      return dialog.dismiss();
    });
    page.on("request", (request) => requests.push(request.url()));
    await page.goto(pathToFileURL(path).href);
    return { page, complaints, requests };
  }

  test("boxes lie over the pictures where the layout says, however wide the window is", async () => {
    const server = await startMinerUServer({ pages: 1, faults: { brokenBoxes: true } });
    open.push(() => server.stop());
    const cwd = folder();
    const name = 'scan #1 100% "ü" & more?.pdf';
    writeFileSync(join(cwd, name), pdfOf(12));
    const args = ["ocr", name, "-o", "read", "--layout"];
    const { code, stderr } = await startCli(args, { folder: cwd, env: envOf(server.baseUrl, "mineru") }).finished;
    expect(code, stderr).toBe(0);
    const whole = JSON.parse(readFileSync(join(cwd, "read", `${name}.json`), "utf8"));
    const results = whole.results as { page: number; elements: OcrElement[] }[];

    const { page, complaints, requests } = await visit(join(cwd, "read", `${name}.html`));
    const pictures = pathToFileURL(join(cwd, "read")).href;
    for (const width of [1_280, 480]) {
      await page.setViewportSize({ width, height: 900 });
      const sections = await sectionsOf(page);
      expect(sections.map(({ heading }) => heading)).toEqual(results.map((result) => `Page ${result.page}`));
      for (const [index, section] of sections.entries()) {
        const { elements } = results[index]!;
        expect(section.pixels).toBeGreaterThan(0);
        expect(section.sheet!.width).toBeGreaterThan(width / 3);
        expectBoxes(section, elements);
        expect(section.texts).toHaveLength(elements.length);
        for (const [place, { text, html, latex }] of elements.entries()) {
          expect(section.texts[place]).toContain(text ?? latex ?? html ?? "");
        }
      }
      // Nothing makes the page wider than the window.
      expect(await widthOf(page)).toBeLessThanOrEqual(width);
    }
    expect(complaints).toEqual([]);
    expect(requests.every((address) => address.startsWith(`${pictures}/`))).toBe(true);
    expect(requests).toHaveLength(1 + results.length);
  });

  test("a box shows its text where the pointer is, leads to it, and back; a formula is no empty text", async () => {
    const cwd = folder();
    const at = (y: number, text: string): OcrElement => {
      return { type: "text", rawType: "text", bbox: [0.1, y, 0.9, y + 0.1], page: 1, order: 0, text };
    };
    const formula = { ...at(0.7, ""), type: "formula", latex: "E=mc^2" } as const;
    const elements = [at(0.1, "first\nline"), at(0.5, "second"), formula];
    writeFileSync(
      join(cwd, "a.html"),
      overlayHtml("a", [{ page: 1, picture: null, aspect: 0.7, failure: null, elements }]),
    );
    const { page, complaints } = await visit(join(cwd, "a.html"));
    const [section] = await sectionsOf(page);
    expect(section!.sheet!.width / section!.sheet!.height).toBeCloseTo(0.7, 2);
    expectBoxes(section!, elements);
    await page.click(".sheet a:nth-of-type(2)");
    expect(await page.locator("li:target").textContent()).toContain("second");
    await page.locator("li:target a").click();
    expect(await page.locator(".sheet a:target").getAttribute("title")).toContain("second");
    expect(section!.texts[2]).toContain("E=mc^2");
    expect(await page.locator(".sheet a").first().getAttribute("title")).toContain("first\nline");
    expect(complaints).toEqual([]);
  });

  test("whatever a model or a file name says is text: it runs nothing, loads nothing, moves nothing", async () => {
    const cwd = folder();
    writeFileSync(join(cwd, "a.pdf"), pdfOf(2));
    const reader = createPageReader();
    open.push(() => reader.close());
    for (const page of [1, 2]) writeFileSync(join(cwd, `${page}.png`), await reader.page(join(cwd, "a.pdf"), page));
    const hostile = [
      "<script>document.title='run'</script>",
      "</li></ol></section></body><script src=https://example.com/x.js></script>",
      "<img src=x onerror=\"document.title='run'\">",
      '" onmouseover="document.title=\'run\'" x="',
      "' onfocus='document.title=1' autofocus='",
      "<iframe src=\"data:text/html,<script>parent.document.title='run'</script>\"></iframe>",
      "<style>.sheet{display:none}</style><link rel=stylesheet href=https://example.com/x.css>",
      '<meta http-equiv="refresh" content="0;url=https://example.com/">',
      "<base href=https://example.com/><form action=https://example.com/><button>x</button></form>",
      "<svg onload=\"document.title='run'\"><a xlink:href='javascript:alert(1)'>x</a></svg>",
      "<!-- <textarea> <title> <plaintext> ]]> &lt;b&gt; &amp;#60; \u0000",
      "\u202eright to left \u2066isolated\u2069 \u200f\u05d0\u05d1\u05d2",
      "W".repeat(4_000),
    ];
    const elements = hostile.map((text, order): OcrElement => {
      const bbox = [0.05, 0.02 + order * 0.07, 0.95, 0.07 + order * 0.07] as const;
      const type = (order === 3 ? text : "text") as OcrElement["type"];
      return { type, rawType: text, bbox, page: 1, order, text };
    });
    const plain = { aspect: 0.7, failure: null, elements };
    const pages: OverlayPage[] = [
      { ...plain, page: 1, picture: "1.png" },
      { ...plain, page: 2, picture: "2.png", elements: elements.toReversed() },
      { ...plain, page: 3, picture: null, failure: hostile.join(" ") },
    ];
    writeFileSync(join(cwd, "a.html"), overlayHtml(hostile.join(" "), pages));
    const { page, complaints, requests } = await visit(join(cwd, "a.html"));
    const title = await page.title();
    for (const width of [1_280, 480]) {
      await page.setViewportSize({ width, height: 900 });
      const sections = await sectionsOf(page);
      expect(sections.map(({ heading }) => heading)).toEqual(["Page 1", "Page 2", "Page 3"]);
      for (const [index, section] of sections.slice(0, 2).entries()) {
        expectBoxes(section, pages[index]!.elements);
        for (const [place, { text = "" }] of pages[index]!.elements.entries()) {
          expect(section.texts[place]).toContain(text.replace("\u0000", ""));
        }
      }
      expect(await widthOf(page)).toBeLessThanOrEqual(width);
    }
    await page.hover(".sheet a:nth-of-type(4)");
    const strange = "script, iframe, link, base, form, svg, meta[http-equiv=refresh], [onmouseover], [onerror], li img";
    expect(await page.locator(strange).count()).toBe(0);
    expect(await page.title()).toBe(title);
    expect(complaints).toEqual([]);
    expect(requests.map((address) => address.split("/").at(-1))).toEqual(["a.html", "1.png", "2.png"]);
  });
});
