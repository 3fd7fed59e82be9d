/** What a command that runs a file calls the things in it. */
export interface RunWords {
  /** One of them; with an s, several. */
  readonly item: string;
  readonly rate: string;
  /** What has become of one that is done. */
  readonly done: string;
  /** What it is given, with its article. */
  readonly answer: string;
}

export const LINE_WORDS: RunWords = { item: "line", rate: "calls/s", done: "answered", answer: "an answer" };
export const PAGE_WORDS: RunWords = { item: "page", rate: "pages/s", done: "read", answer: "a result" };
export const TEXT_WORDS: RunWords = { item: "text", rate: "texts/s", done: "embedded", answer: "a vector" };
