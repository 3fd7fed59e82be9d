import type { OcrBox, OcrElement, OcrElementType } from "../domain/ocr.js";

/** One page of a document as the overlay shows it. */
export interface OverlayPage {
  /** From 1. */
  readonly page: number;
  /** Address of the page's picture, beside the HTML file; null = there is none to show. */
  readonly picture: string | null;
  /** Width ÷ height, for a page without a picture. */
  readonly aspect: number;
  readonly elements: readonly OcrElement[];
  /** Why the page could not be read; null = it was. */
  readonly failure: string | null;
}

const COLOURS: Readonly<Record<OcrElementType, string>> = {
  title: "#d6336c",
  heading: "#e8590c",
  text: "#1c7ed6",
  list: "#1098ad",
  table: "#2b8a3e",
  formula: "#7048e8",
  image: "#868e96",
  caption: "#f08c00",
  footnote: "#5c940d",
  header: "#adb5bd",
  footer: "#adb5bd",
  page_number: "#adb5bd",
  code: "#0b7285",
  chart: "#37b24d",
  other: "#495057",
};

const ESCAPED: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Model text is shown, never run: everything goes through here. */
function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ESCAPED[character]!);
}

/**
 * A page to look at: the boxes of a document over the pictures of its pages, the texts beside them. One file without
 * scripts; only the pictures stand beside it.
 */
export function overlayHtml(title: string, pages: readonly OverlayPage[]): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src 'self' file:; style-src 'unsafe-inline'">
<title>${escaped(title)}</title>
<style>
${STYLE}
${Object.entries(COLOURS)
  .map(([type, colour]) => `.${type}{--colour:${colour}}`)
  .join("\n")}
</style>
</head>
<body>
<h1>${escaped(title)}</h1>
<p class="legend">${Object.keys(COLOURS)
    .map((type) => `<span class="${type}">${type.replace("_", " ")}</span>`)
    .join(" ")}</p>
${pages.map(section).join("\n")}
</body>
</html>
`;
}

const STYLE = `body{font:15px/1.5 system-ui,sans-serif;margin:1.5rem;overflow-wrap:anywhere;color:#212529;background:#f8f9fa}
h1,.failure{unicode-bidi:plaintext}
h2{font-size:1rem;margin:2rem 0 .5rem}
.legend span{border-left:.8em solid var(--colour);padding-left:.3em;margin-right:.8em;white-space:nowrap}
section{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,1fr);gap:0 1.5rem;align-items:start}
section h2{grid-column:1/-1}
.sheet{position:relative;background:#fff;box-shadow:0 0 4px #0004}
.sheet img{display:block;width:100%}
.sheet a{position:absolute;box-sizing:border-box;border:2px solid var(--colour);background:color-mix(in srgb,var(--colour) 10%,transparent)}
.sheet a:hover,.sheet a:focus,.sheet a:target{background:color-mix(in srgb,var(--colour) 30%,transparent)}
.sheet a b{position:absolute;top:-2px;right:100%;font:11px/1.3 system-ui;color:#fff;background:var(--colour);padding:0 3px}
ol{list-style:none;margin:0;padding:0}
li{border-left:4px solid var(--colour);margin:0 0 .5rem;padding:0 .6rem;white-space:pre-wrap;unicode-bidi:plaintext}
li:target{background:#fff3bf}
li small{color:#495057;display:block}
li small a{color:inherit}
.failure{color:#c92a2a}
@media (max-width:50rem){section{grid-template-columns:1fr}ol{margin-top:.75rem}}
@media (prefers-color-scheme:dark){body{color:#e9ecef;background:#212529}li small{color:#adb5bd}li:target{background:#664d03}.failure{color:#ff8787}}`;

function section({ page, picture, aspect, elements, failure }: OverlayPage): string {
  const heading = `<h2 id="page-${page}">Page ${page}</h2>`;
  if (failure !== null) return `<section>${heading}<p class="failure">Not read: ${escaped(failure)}</p></section>`;
  const idOf = (index: number): string => `page-${page}-${index + 1}`;
  const boxes = elements.map((element, index) => {
    const { type, bbox } = element;
    const ids = `id="${idOf(index)}-box" href="#${idOf(index)}"`;
    return `<a class="${classOf(type)}" ${ids} style="${placed(bbox)}" title="${hint(element)}"><b>${index + 1}</b></a>`;
  });
  const texts = elements.map((element, index) => {
    const id = idOf(index);
    return `<li id="${id}" class="${classOf(element.type)}">${told(element, index, `${id}-box`)}</li>`;
  });
  const sheet =
    picture === null
      ? `<div class="sheet" style="aspect-ratio:${aspect.toFixed(4)}">${boxes.join("")}</div>`
      : `<div class="sheet"><img src="${escaped(picture)}" alt="Page ${page}">${boxes.join("")}</div>`;
  return `<section>${heading}${sheet}<ol>${texts.join("")}</ol></section>`;
}

/** The results may have been edited since they were written. */
function classOf(type: unknown): string {
  return typeof type === "string" && Object.hasOwn(COLOURS, type) ? type : "other";
}

function placed([x0, y0, x1, y1]: OcrBox): string {
  const percent = (share: number): string => `${(Number(share) * 100).toFixed(2)}%`;
  return `left:${percent(x0)};top:${percent(y0)};width:${percent(x1 - x0)};height:${percent(y1 - y0)}`;
}

function textOf({ text, html, latex }: OcrElement): string {
  return String(text || latex || html || "");
}

/** As much of a text is shown where the pointer is; all of it stands beside the page. */
const MAX_HINT_UNITS = 300;

function hint(element: OcrElement): string {
  const text = textOf(element);
  const cut = text.length > MAX_HINT_UNITS ? `${text.slice(0, MAX_HINT_UNITS)}…` : text;
  return escaped(`${classOf(element.type)}${cut === "" ? "" : `\n${cut}`}`);
}

function told(element: OcrElement, index: number, boxId: string): string {
  const { type, rawType, score } = element;
  // Its own direction of writing, which ends with it.
  const raw = rawType === type ? "" : ` (<bdi>${escaped(String(rawType))}</bdi>)`;
  const sure = score === undefined ? "" : `, ${(score * 100).toFixed(0)} % sure`;
  const number = `<a href="#${boxId}">${index + 1}</a>. `;
  return `<small>${number}${classOf(type)}${raw}${sure}</small>${escaped(textOf(element))}`;
}
