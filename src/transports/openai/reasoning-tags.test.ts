import { describe, expect, it } from "vitest";
import { profiles } from "./profiles.js";
import { splitReasoning, TagScanner } from "./reasoning-tags.js";

const tags = profiles.openai!.reasoningTags;

function scan(pieces: readonly string[], orphans?: boolean): { thinking: string; content: string } {
  const seen = { thinking: "", content: "" };
  const scanner = new TagScanner(tags, (kind, text) => {
    if (kind === "thinking") seen.thinking += text;
    else seen.content += text;
  });
  for (const piece of pieces) scanner.push(piece, orphans);
  scanner.end();
  return seen;
}

describe("a closing tag that nothing opened", () => {
  const text = "Okay, count them.\n</think>\n\nThree.";

  it("ends reasoning for the reader of a stream too, when the text comes in one piece", () => {
    expect(scan([text])).toEqual(splitReasoning(text, tags));
    expect(scan(["Okay.</think>", "\n\nThr", "ee."])).toEqual({ thinking: "Okay.", content: "Three." });
  });

  it("is text when reasoning came in a field of its own, and when it is quoted", () => {
    expect(scan([text], false)).toEqual({ thinking: "", content: text });
    const quoted = "The tag `</think>` ends it.";
    expect(scan([quoted])).toEqual({ thinking: "", content: quoted });
  });

  it("is text once something before it was handed out", () => {
    expect(scan(["Okay, ", "count.</think>3"])).toEqual({ thinking: "", content: "Okay, count.</think>3" });
  });

  it.each([
    [
      "nothing in common",
      [
        ["<a>", "</a>"],
        ["[b]", "[;b]"],
      ],
    ],
    [
      "letters alone in common",
      [
        ["<a>", "|az|"],
        ["[b]", "[bz]"],
      ],
    ],
    [
      "one character in common",
      [
        ["<a>", "</a>"],
        ["[b]", "[/b]"],
      ],
    ],
    [
      "a character beyond ASCII in common",
      [
        ["<a>", "a▷"],
        ["[b]", "b▷"],
      ],
    ],
  ] as const)("is found whatever the closing tags of a profile have: %s", (_, own) => {
    for (const [, close] of own) {
      expect(splitReasoning(`Okay.${close}Three.`, own)).toEqual({ thinking: "Okay.", content: "Three." });
    }
    expect(splitReasoning("Three/3 [z]", own)).toEqual({ thinking: "", content: "Three/3 [z]" });
  });
});
