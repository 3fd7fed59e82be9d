import { formatCount } from "./format.js";

/** What people call the lines of a run, and what becomes of them. */
export interface RunWords {
  readonly unit: "line" | "page" | "text";
  readonly rate: string;
  /** Heading of what each source gave. */
  readonly answers: string;
  readonly allDone: string;
  /** Those that came to nothing, as the end of a run tells of them. */
  readonly failed: (count: number) => string;
}

export const LINE_WORDS: RunWords = {
  unit: "line",
  rate: "calls/s",
  answers: "answers",
  allDone: "All lines are answered",
  failed(count) {
    const holds = count === 1 ? "1 line holds an error" : `${formatCount(count)} lines hold errors`;
    return `${holds} instead of an answer`;
  },
};

export const PAGE_WORDS: RunWords = {
  unit: "page",
  rate: "pages/s",
  answers: "pages",
  allDone: "All pages are read",
  failed: (count) => (count === 1 ? "1 page was not read" : `${formatCount(count)} pages were not read`),
};

export const TEXT_WORDS: RunWords = {
  unit: "text",
  rate: "texts/s",
  answers: "texts",
  allDone: "All texts are embedded",
  failed: (count) => (count === 1 ? "1 text has no vector" : `${formatCount(count)} texts have no vector`),
};
