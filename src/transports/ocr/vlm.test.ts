import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { judge } from "../../domain/judgement.js";
import type { OcrReaderName } from "../../domain/ocr.js";
import type { SourceConfig } from "../../domain/source.js";
import { RequestRejectedError, ResultInvalidError, SourceDeadError, TransientError } from "../../errors.js";
import type { OcrTransport } from "../../ports/transport.js";
import type { Answer, ReceivedRequest } from "../../testing/provider/answer.js";
import { type SimulatedProvider, startSimulatedProvider } from "../../testing/provider/server.js";
import { runtime, TestContext, testSource } from "../attempt.test-helper.js";
import { profiles } from "../openai/profiles.js";
import { startReplayServer } from "../replay-server.test-helper.js";
import { failure, ocrAttempt, PDF, picture, SIZELESS } from "./ocr.test-helper.js";
import { createVlmOcrTransport } from "./vlm.js";
import { readerOf } from "./vlm-readers.js";

// Its own for each test: a port may come again, with a server that knows nothing of the sockets kept for the one before.
let transport: OcrTransport;
beforeEach(() => {
  transport = createVlmOcrTransport({ runtime });
});
let provider: SimulatedProvider | undefined;
let asked: ReceivedRequest[] = [];

/** A source of a model that answers this. */
async function answering(answer: Answer | string, overrides: Partial<SourceConfig> = {}) {
  asked = [];
  const say = (request: ReceivedRequest) => {
    asked.push(request);
    return answer;
  };
  provider = await startSimulatedProvider({ answer: say });
  return testSource(provider.baseUrl, { transport: "vlm", model: "qwen3-vl", profile: profiles.vllm, ...overrides });
}

afterEach(async () => {
  await transport.close();
  await provider?.stop();
  provider = undefined;
});

const partsOf = (request: ReceivedRequest | undefined) =>
  request?.messages[0]?.content as { type: string; text?: string; image_url?: { url: string } }[];

describe("readers", () => {
  test.each([
    ["rednote-hilab/dots.ocr", undefined, "dots-ocr"],
    ["dots.mocr", "auto", "dots-ocr"],
    ["DotsOCR", undefined, "dots-ocr"],
    ["deepseek-ai/DeepSeek-OCR-2", undefined, "deepseek-ocr"],
    ["allenai/olmOCR-2-7B-1025-FP8", undefined, "olmocr"],
    ["gpt-5.2", undefined, "plain"],
    ["my-model", "olmocr", "olmocr"],
    ["deepseek-ocr", "plain", "plain"],
  ] as const)("%s with ocrReader %s is read by %s", (model, ocrReader, name) => {
    const source = testSource("http://127.0.0.1:1/v1", { model, ...(ocrReader === undefined ? {} : { ocrReader }) });
    expect(readerOf(source).name).toBe(name);
  });

  test.each(["plain", "dots-ocr", "deepseek-ocr", "olmocr"] satisfies OcrReaderName[])(
    "%s refuses a PDF before anything is sent, and says what to do",
    async (ocrReader) => {
      const source = await answering("never", { ocrReader });
      const context = new TestContext();
      for (const call of [transport.recognizeText, transport.parseLayout]) {
        const error = await failure(call(ocrAttempt(source, PDF, context)));
        expect(error).toBeInstanceOf(RequestRejectedError);
        expect(error).toMatchObject({
          code: "unsupported_modality",
          message: expect.stringMatching(/^src_1 ocr_(text|layout) request rejected: .*render its pages first/),
        });
        // So that a source which reads PDFs may take the call.
        expect(judge(error).failure).toBe("rejected_by_model");
      }
      expect(context.sent).toBe(0);
      expect(provider?.stats().arrived).toBe(0);
    },
  );

  test.each(["plain", "olmocr"] satisfies OcrReaderName[])(
    "%s reads no layouts, and says what to do",
    async (ocrReader) => {
      const source = await answering("never", { ocrReader });
      const error = await failure(transport.parseLayout(ocrAttempt(source)));
      expect(error).toMatchObject({
        code: "unsupported_modality",
        message: expect.stringContaining("Read its text instead"),
      });
      expect(provider?.stats().arrived).toBe(0);
    },
  );

  test("a profile that takes no pictures is told before anything is sent", async () => {
    const profile = { ...profiles.vllm, modalities: [] };
    const source = await answering("never", { profile });
    const error = await failure(transport.recognizeText(ocrAttempt(source)));
    expect(error).toMatchObject({ code: "unsupported_modality" });
    expect(provider?.stats().arrived).toBe(0);
  });
});

describe("plain", () => {
  test("asks for a transcription of the picture without thinking, streamed, and tells what it used", async () => {
    const source = await answering("Hello\nworld ");
    const context = new TestContext();
    const answer = await transport.recognizeText(ocrAttempt(source, picture(), context));
    expect(answer).toMatchObject({ text: "Hello\nworld", pageCount: 1, modelReported: "qwen3-vl", statusCode: 200 });
    expect(answer.usage).toMatchObject({ completionTokens: 3, source: "measured" });
    expect(context.firstTokens).toBe(1);
    const body = asked[0]?.body;
    expect(body).toMatchObject({ stream: true, chat_template_kwargs: { enable_thinking: false } });
    for (const field of ["temperature", "top_p", "max_tokens"]) expect(body).not.toHaveProperty(field);
    const [image, prompt] = partsOf(asked[0]);
    expect(image?.image_url?.url).toBe(`data:image/png;base64,${picture().bytes.toString("base64")}`);
    expect(prompt?.text).toContain("Transcribe");
  });

  test("asks for one body where the source doesn't stream", async () => {
    const source = await answering("text", { stream: false });
    await expect(transport.recognizeText(ocrAttempt(source))).resolves.toMatchObject({ text: "text" });
    expect(asked[0]?.stream).toBe(false);
  });

  test.each([
    ["a source's own thinking", { thinking: true }, { enable_thinking: true }],
    ["EXTRA_BODY", { extraBody: { chat_template_kwargs: { enable_thinking: true } } }, { enable_thinking: true }],
  ] as const)("leaves thinking to %s", async (_name, overrides, kwargs) => {
    const source = await answering("text", overrides);
    await transport.recognizeText(ocrAttempt(source));
    expect(asked[0]?.body.chat_template_kwargs).toEqual(kwargs);
  });

  test("a source that refuses the switch for thinking is asked without it from then on", async () => {
    const refusal = {
      status: 400,
      chunks: [{ utf8: '{"error":{"message":"Unknown parameter: reasoning_effort","code":"unknown_parameter"}}' }],
    };
    const good = {
      chunks: [{ utf8: '{"choices":[{"index":0,"message":{"content":"text"},"finish_reason":"stop"}]}' }],
    };
    const scripts = [refusal, good];
    const replay = await startReplayServer(() => scripts.shift());
    const source = testSource(replay.baseUrl, { model: "some-vl" });
    const error = await failure(transport.recognizeText(ocrAttempt(source)));
    expect(judge(error).failure).toBe("param_repaired");
    expect(replay.requests[0]?.body).toContain('"reasoning_effort":"none"');
    expect(await transport.recognizeText(ocrAttempt(source))).toMatchObject({ text: "text", usage: null });
    expect(replay.requests[1]?.body).not.toContain("reasoning_effort");
    await replay.close();
  });

  test.each([
    ["```markdown\n# A\n\ntext\n```", "# A\n\ntext"],
    ["```\na\n```\n\n```\nb\n```", "```\na\n```\n\n```\nb\n```"],
    ["Error: disk full", "Error: disk full"],
    ["Unable to process your payment. Please call us.", "Unable to process your payment. Please call us."],
    ["Sorry, we are closed today.", "Sorry, we are closed today."],
  ])("%j is the text %j", async (content, text) => {
    const source = await answering(content);
    expect(await transport.recognizeText(ocrAttempt(source))).toMatchObject({ text });
  });

  test.each([
    ["I'm sorry, but I can't assist with that request.", ResultInvalidError, "refused", "invalid"],
    ["I cannot process images.", ResultInvalidError, "refused", "invalid"],
    ["I'm unable to read the text in this picture.", ResultInvalidError, "refused", "invalid"],
    ["Sorry, I can't help with that.", ResultInvalidError, "refused", "invalid"],
    ["抱歉，我无法识别这张图片。", ResultInvalidError, "refused", "invalid"],
    ["Error: Request queue full", TransientError, "rate_limit", "rate_limited"],
    ["Error: Request timeout", TransientError, "timeout", "transient"],
    [" \n ", TransientError, "empty", "transient"],
    ["``` \n\n```", ResultInvalidError, "empty", "invalid"],
    [{ content: "half a te", finishReason: "length" }, ResultInvalidError, "truncated", "invalid"],
    [{ content: "half a te", finishReason: "content_filter" }, RequestRejectedError, "content_filtered", "rejected"],
  ] as const)("%j is no reading", async (answer, type, code, means) => {
    const source = await answering(answer);
    const error = await failure(transport.recognizeText(ocrAttempt(source)));
    expect(error).toBeInstanceOf(type);
    expect(error).toMatchObject({ code, message: expect.stringMatching(/^src_1 ocr_text /) });
    expect(judge(error).failure).toBe(means);
    const content = typeof answer === "string" ? answer : answer.content;
    if (type === ResultInvalidError) expect(error.rawText).toBe(content);
    expect(error.partial).toMatchObject({ usage: { source: "measured" } });
  });

  test("a page that begins like a refusal and goes on is a reading", async () => {
    const content = `I am sorry that I can't help you any more, wrote my uncle. ${"And so he went on. ".repeat(20)}`;
    const source = await answering(content);
    expect(await transport.recognizeText(ocrAttempt(source))).toMatchObject({ text: content.trim() });
  });

  test("a refusal in its own field is one, and no text shows the key", async () => {
    const said = "key sk-test-key-0001";
    const message = { content: `cut ${said}`, refusal: null };
    const bodies = [
      { choices: [{ index: 0, message: { content: "", refusal: "No." }, finish_reason: "stop" }] },
      { choices: [{ index: 0, message, finish_reason: "length" }] },
    ];
    const replay = await startReplayServer(() => ({ chunks: [{ utf8: JSON.stringify(bodies.shift()) }] }));
    const source = testSource(replay.baseUrl);
    expect(await failure(transport.recognizeText(ocrAttempt(source)))).toMatchObject({ code: "refused" });
    const cut = await failure(transport.recognizeText(ocrAttempt(source)));
    expect(cut).toMatchObject({ code: "truncated", rawText: "cut key [redacted]" });
    await replay.close();
  });

  test("a call that overflows without a limit of ours is told as that", async () => {
    const message = "This model's maximum context length is 4096 tokens.";
    const replay = await startReplayServer({ status: 400, chunks: [{ utf8: JSON.stringify({ error: { message } }) }] });
    const error = await failure(transport.recognizeText(ocrAttempt(testSource(replay.baseUrl, { model: "gpt-4o" }))));
    expect(error).toMatchObject({ code: "context_length" });
    await replay.close();
  });

  test("a model that thinks only in streams is streamed", async () => {
    const rule = { on: { enable_thinking: true }, streams: "when_on" } as const;
    const profile = { ...profiles.vllm, thinking: [rule] };
    const source = await answering("text", { profile, thinking: true, stream: false });
    await transport.recognizeText(ocrAttempt(source));
    expect(asked[0]?.stream).toBe(true);
  });

  test("failures are those of chat, with the operation before the label", async () => {
    const source = await answering("never");
    provider?.change({ faults: { deadKey: true } });
    const dead = await failure(transport.recognizeText(ocrAttempt(source)));
    expect(dead).toBeInstanceOf(SourceDeadError);
    expect(dead).toMatchObject({ code: "auth", message: expect.stringMatching(/^src_1 ocr_text credential rejected/) });
    provider?.change({ faults: { rateLimitRate: 1 } });
    const limited = await failure(transport.recognizeText(ocrAttempt(source)));
    expect(limited).toMatchObject({
      rateLimited: true,
      retryAfterMs: 1_000,
      message: expect.stringMatching(/^src_1 ocr_text rate limited/),
    });
    provider?.change({ faults: { hangRate: 1, hangAt: "start" } });
    const late = await failure(transport.recognizeText(ocrAttempt({ ...source, ttftTimeoutMs: 50 })));
    expect(late).toMatchObject({
      code: "ttft_timeout",
      message: expect.stringMatching(/^src_1 ocr_text transient failure/),
    });
    const context = new TestContext();
    const pending = failure(transport.recognizeText(ocrAttempt(source, picture(), context)));
    await expect.poll(() => context.sent).toBe(1);
    const reason = new Error("the caller left");
    context.abort(reason);
    expect(await pending).toBe(reason);
  });

  test("an answer that only thought, up to its limit, is prefixed as well", async () => {
    const source = await answering({ content: "", thinking: "hm", finishReason: "length" });
    const error = await failure(transport.recognizeText(ocrAttempt(source)));
    expect(error).toMatchObject({
      code: "truncated",
      message: expect.stringMatching(/^src_1 ocr_text unusable result/),
    });
  });
});

describe("dots.ocr", () => {
  const dots = { model: "rednote-hilab/dots.ocr" };
  /** 1000 × 700 is looked at as 1008 × 700. */
  const PAGE = picture(1_000, 700);
  const cell = (box: unknown, category: string, text?: string) => ({
    bbox: box,
    category,
    ...(text === undefined ? {} : { text }),
  });
  const CELLS = [
    cell([100.8, 70, 504, 140], "Title", "# Annual report"),
    cell([0, 140, 1_008, 350], "Table", "<table><tr><td>1</td></tr></table>"),
    cell([0, 350, 504, 420], "Formula", "$$E=mc^2$$"),
    cell([0, 420, 504, 700], "Picture"),
    cell([504, 420, 1_008, 490], "List-item", "- one"),
    cell([504, 490, 1_008, 560], "Section-header", "## Two"),
    cell([504, 630, 1_008, 700], "Page-footer", "1"),
  ];
  const TYPES = ["title", "table", "formula", "image", "list", "heading", "footer"];

  test("is asked behind the marks of a picture, with its makers' sampling", async () => {
    const source = await answering(JSON.stringify(CELLS), dots);
    await transport.parseLayout(ocrAttempt(source, PAGE));
    expect(asked[0]?.body).toMatchObject({ temperature: 0.1, top_p: 0.9, max_tokens: 32_768 });
    expect(asked[0]?.body).not.toHaveProperty("chat_template_kwargs");
    const [image, prompt] = partsOf(asked[0]);
    expect(image?.type).toBe("image_url");
    expect(prompt?.text).toMatch(/^<\|img\|><\|imgpad\|><\|endofimg\|>.*bbox/);
    for (const word of ["Caption", "Section-header", "[x1, y1, x2, y2]", "LaTeX", "HTML"])
      expect(prompt?.text).toContain(word);
  });

  test("is asked for text in its own way", async () => {
    const source = await answering(" Annual report\n", dots);
    expect(await transport.recognizeText(ocrAttempt(source, SIZELESS))).toMatchObject({ text: "Annual report" });
    expect(partsOf(asked[0])?.[1]?.text).toBe("<|img|><|imgpad|><|endofimg|>Extract the text content from this image.");
  });

  test("EXTRA_BODY wins over the makers' sampling", async () => {
    const extraBody = { temperature: 0.5, max_completion_tokens: 1_000 };
    const source = await answering("[]", { ...dots, extraBody });
    await transport.parseLayout(ocrAttempt(source));
    expect(asked[0]?.body).toMatchObject({ ...extraBody, top_p: 0.9 });
    expect(asked[0]?.body).not.toHaveProperty("max_tokens");
  });

  test("boxes are pixels of what the model looked at, not of what was sent", async () => {
    const source = await answering(JSON.stringify(CELLS), dots);
    const { layout, usage } = await transport.parseLayout(ocrAttempt(source, PAGE));
    expect(layout.pages).toEqual([{ page: 1, width: 1_000, height: 700, unit: "pixel" }]);
    expect(layout.elements.map(({ type }) => type)).toEqual(TYPES);
    expect(layout.elements[0]?.bbox.map((share) => Math.round(share * 1e6) / 1e6)).toEqual([0.1, 0.1, 0.5, 0.2]);
    expect(layout.elements[0]).toMatchObject({ rawType: "Title", text: "# Annual report", page: 1, order: 0 });
    expect(layout.elements[1]).toMatchObject({ html: "<table><tr><td>1</td></tr></table>", bbox: [0, 0.2, 1, 0.5] });
    expect(layout.elements[2]).toMatchObject({ latex: "E=mc^2" });
    expect(layout.elements[3]).not.toHaveProperty("text");
    expect(usage).toMatchObject({ source: "measured" });
  });

  test.each([
    ["a block of code around it", `\`\`\`json\n${JSON.stringify(CELLS)}\n\`\`\``, 7, 0],
    ["an object around the list", JSON.stringify({ layout: CELLS }), 7, 0],
    ["a single object", JSON.stringify(CELLS[0]), 1, 0],
    ["an end in the middle", JSON.stringify(CELLS).slice(0, -20), 6, 1],
    [
      "an escape that is none",
      `[${CELLS.map((one) => JSON.stringify(one))
        .join(",")
        .replace("E=mc", "\\alpha")}]`,
      6,
      1,
    ],
    ["boxes that are none", JSON.stringify([...CELLS, cell(["a", 1], "Text"), cell(null, "Text"), "x"]), 7, 3],
    ["no element", "[]", 0, 0],
  ])("%s leaves what is complete", async (_name, content, kept, dropped) => {
    const source = await answering(content, dots);
    const { layout } = await transport.parseLayout(ocrAttempt(source, PAGE));
    expect(layout.elements).toHaveLength(kept);
    expect(layout.droppedElements).toBe(dropped);
  });

  test("an answer cut by the output limit is none, whatever is complete in it", async () => {
    const content = JSON.stringify(CELLS).slice(0, -20);
    const source = await answering({ content, finishReason: "length" }, dots);
    const error = await failure(transport.parseLayout(ocrAttempt(source, PAGE)));
    expect(error).toBeInstanceOf(ResultInvalidError);
    expect(error).toMatchObject({ code: "truncated", rawText: content });
  });

  test("an answer that is no list is an unusable layout", async () => {
    const source = await answering("# Annual report", dots);
    const error = await failure(transport.parseLayout(ocrAttempt(source, PAGE)));
    expect(error).toBeInstanceOf(ResultInvalidError);
    expect(error).toMatchObject({ code: "bad_layout", rawText: "# Annual report" });
  });

  test.each([
    ["whose size isn't known", SIZELESS, "size can't be told"],
    ["that is a thread", picture(10_000, 20), "200 times"],
  ])("a picture %s is refused before anything is sent", async (_name, image, reason) => {
    const source = await answering("[]", dots);
    const error = await failure(transport.parseLayout(ocrAttempt(source, image)));
    expect(error).toMatchObject({ code: "unsupported_modality", message: expect.stringContaining(reason) });
    expect(provider?.stats().arrived).toBe(0);
  });

  test("a server with a short context is asked again without a limit of ours, once", async () => {
    const message = "This model's maximum context length is 16384 tokens. However, you requested 32768 output tokens.";
    const refusal = {
      status: 400,
      chunks: [{ utf8: JSON.stringify({ error: { message, type: "BadRequestError" } }) }],
    };
    const replay = await startReplayServer(refusal);
    const source = testSource(replay.baseUrl, dots);
    const first = await failure(transport.recognizeText(ocrAttempt(source)));
    expect(first).toMatchObject({ code: "unsupported_param", details: { param: "max_tokens", droppedByUs: true } });
    expect(judge(first).failure).toBe("param_repaired");
    const second = await failure(transport.recognizeText(ocrAttempt(source)));
    expect(second).toMatchObject({ code: "context_length" });
    expect(replay.requests.map(({ body }) => body.includes("max_tokens"))).toEqual([true, false]);
    await replay.close();
  });
});

describe("DeepSeek-OCR", () => {
  const deepseek = { model: "deepseek-ai/DeepSeek-OCR" };
  const GROUNDED =
    "<|ref|>title<|/ref|><|det|>[[99.9, 0, 499.5, 999]]<|/det|>\n# Annual report\n\n" +
    "<|ref|>sub_title<|/ref|><|det|>[[0, 0, 999, 499.5]]<|/det|>\n## Results\n" +
    "<|ref|>equation<|/ref|><|det|>[[0, 0, 999, 999]]<|/det|>\n\\[ E=mc^2 \\]\n" +
    "<|ref|>image<|/ref|><|det|>[[0, 0, 499.5, 999], [499.5, 0, 999, 999]]<|/det|>\n" +
    "<|ref|>table<|/ref|><|det|>[[0, 0, 999, 999]]<|/det|>\n<table><tr><td>1</td></tr></table><｜end▁of▁sentence｜>";

  test("is asked with its special tokens left in, and kept from repeating itself", async () => {
    const source = await answering(GROUNDED, deepseek);
    await transport.parseLayout(ocrAttempt(source));
    await transport.recognizeText(ocrAttempt(source));
    for (const { body } of asked) {
      expect(body).toMatchObject({
        temperature: 0,
        skip_special_tokens: false,
        vllm_xargs: { ngram_size: 30, window_size: 90, whitelist_token_ids: [128_821, 128_822] },
      });
    }
    expect(asked.map((request) => partsOf(request)?.[1]?.text)).toEqual([
      "<image>\n<|grounding|>Convert the document to markdown.",
      "<image>\nFree OCR.",
    ]);
  });

  test("coordinates are 0 to 999; the text of a block is what follows its mark", async () => {
    const source = await answering(GROUNDED, deepseek);
    const { layout } = await transport.parseLayout(ocrAttempt(source, picture(2_000, 1_000)));
    expect(layout.pages).toEqual([{ page: 1, width: 2_000, height: 1_000, unit: "pixel" }]);
    expect(layout.elements).toEqual([
      { type: "title", rawType: "title", bbox: [0.1, 0, 0.5, 1], page: 1, order: 0, text: "# Annual report" },
      { type: "heading", rawType: "sub_title", bbox: [0, 0, 1, 0.5], page: 1, order: 1, text: "## Results" },
      { type: "formula", rawType: "equation", bbox: [0, 0, 1, 1], page: 1, order: 2, latex: "E=mc^2" },
      { type: "image", rawType: "image", bbox: [0, 0, 0.5, 1], page: 1, order: 3 },
      { type: "image", rawType: "image", bbox: [0.5, 0, 1, 1], page: 1, order: 4 },
      {
        type: "table",
        rawType: "table",
        bbox: [0, 0, 1, 1],
        page: 1,
        order: 5,
        html: "<table><tr><td>1</td></tr></table>",
      },
    ]);
    const sizeless = await transport.parseLayout(ocrAttempt(source, SIZELESS));
    expect(sizeless.layout.pages).toEqual([{ page: 1, width: 1, height: 1, unit: "normalised" }]);
    expect(sizeless.layout.elements[0]?.bbox).toEqual([0.1, 0, 0.5, 1]);
  });

  test("of a mark with several boxes, the first that can be used has the text", async () => {
    const content =
      "<|ref|>text<|/ref|><|det|>[[5, 5, 5, 5], [0, 0, 999, 999], [0, 0, 499.5, 999]]<|/det|>\nAll is well.";
    const source = await answering(content, deepseek);
    const { layout } = await transport.parseLayout(ocrAttempt(source));
    expect(layout.elements.map(({ text }) => text)).toEqual(["All is well.", undefined]);
    expect(layout.droppedElements).toBe(1);
  });

  test("marks that are broken are dropped and counted", async () => {
    const content =
      "before<|ref|>text<|/ref|><|det|>[[1, 2]]<|/det|>\na<|ref|>text<|/ref|><|det|>nothing<|/det|>b" +
      "<|ref|>text<|/ref|>c<|ref|>text<|/ref|><|det|>[[0, 0, 9, 9]]";
    const source = await answering(content, deepseek);
    const { layout } = await transport.parseLayout(ocrAttempt(source));
    expect(layout).toMatchObject({ elements: [], droppedElements: 4 });
  });

  test("text without a single mark is an unusable layout that says what the server must do", async () => {
    const source = await answering("title[[1, 2, 3, 4]]\nAnnual report", deepseek);
    const error = await failure(transport.parseLayout(ocrAttempt(source)));
    expect(error).toMatchObject({ code: "bad_layout", message: expect.stringContaining("skip_special_tokens") });
  });

  test("text comes without the model's own marks", async () => {
    const source = await answering("Annual report\n<td>1</td><｜end▁of▁sentence｜>", deepseek);
    expect(await transport.recognizeText(ocrAttempt(source))).toMatchObject({ text: "Annual report\n<td>1</td>" });
  });

  test("what a server refuses of ours is left out from then on", async () => {
    const detail = [{ type: "extra_forbidden", loc: ["body", "vllm_xargs"], msg: "Extra inputs are not permitted" }];
    const refusal = { status: 422, chunks: [{ utf8: JSON.stringify({ detail }) }] };
    const good = {
      chunks: [{ utf8: '{"choices":[{"index":0,"message":{"content":"text"},"finish_reason":"stop"}]}' }],
    };
    const scripts = [refusal, good];
    const replay = await startReplayServer(() => scripts.shift());
    const source = testSource(replay.baseUrl, deepseek);
    const error = await failure(transport.recognizeText(ocrAttempt(source)));
    expect(error).toMatchObject({ details: { param: "vllm_xargs", droppedByUs: true } });
    expect(await transport.recognizeText(ocrAttempt(source))).toMatchObject({ text: "text" });
    expect(replay.requests[1]?.body).not.toContain("vllm_xargs");
    expect(replay.requests[1]?.body).toContain('"skip_special_tokens":false');
    await replay.close();
  });
});

describe("olmOCR", () => {
  const olmocr = { model: "allenai/olmOCR-2-7B-1025-FP8" };
  const MATTER =
    "---\nprimary_language: en\nis_rotation_valid: True\nrotation_correction: 0\nis_table: False\nis_diagram: False\n---\n";

  test("is asked with the text first, and its front matter is taken off", async () => {
    const source = await answering(`${MATTER}Annual report\n---\nAll is well.\n`, olmocr);
    expect(await transport.recognizeText(ocrAttempt(source))).toMatchObject({
      text: "Annual report\n---\nAll is well.",
    });
    expect(partsOf(asked[0])?.map(({ type }) => type)).toEqual(["text", "image_url"]);
    expect(partsOf(asked[0])?.[0]?.text).toContain("is_rotation_valid");
    expect(asked[0]?.body).toMatchObject({ temperature: 0.1, max_tokens: 8_000 });
  });

  test.each([
    ["Annual report", "Annual report"],
    ["---\nAnnual report\n---\nmore", "---\nAnnual report\n---\nmore"],
    ["---\nprimary_language: en\nAnnual report", "---\nprimary_language: en\nAnnual report"],
  ])("%j without front matter stays as it is", async (content, text) => {
    const source = await answering(content, olmocr);
    expect(await transport.recognizeText(ocrAttempt(source))).toMatchObject({ text });
  });

  test("front matter may have blank lines, and a stream may end with [DONE] alone", async () => {
    const content = JSON.stringify("---\nprimary_language: null\n\nis_table: False\n---\nAnnual report");
    const utf8 = `data: {"choices":[{"index":0,"delta":{"content":${content}}}]}\n\ndata: [DONE]\n\n`;
    const headers = { "content-type": "text/event-stream" };
    const replay = await startReplayServer({ headers, chunks: [{ utf8 }] });
    const source = testSource(replay.baseUrl, olmocr);
    expect(await transport.recognizeText(ocrAttempt(source))).toMatchObject({ text: "Annual report" });
    await replay.close();
  });

  test("front matter alone is no text", async () => {
    const source = await answering(MATTER, olmocr);
    const error = await failure(transport.recognizeText(ocrAttempt(source)));
    expect(error).toBeInstanceOf(ResultInvalidError);
    expect(error).toMatchObject({ code: "empty", rawText: MATTER });
  });

  test.each(["length", "repetition"])("an answer that ended by %s is tried again", async (finishReason) => {
    const source = await answering({ content: `${MATTER}and and and`, finishReason }, olmocr);
    const error = await failure(transport.recognizeText(ocrAttempt(source)));
    expect(error).toBeInstanceOf(TransientError);
    expect(error).toMatchObject({ code: "truncated", partial: { usage: { source: "measured" } } });
    expect(judge(error).failure).toBe("transient");
  });
});

test("health asks for the models with the key", async () => {
  const source = await answering("never", { model: "sim-model" });
  const check = (given: SourceConfig) => transport.checkHealth({ source: given, runtime, timeoutMs: 2_000 });
  expect(await check(source)).toMatchObject({ ok: true, detail: "answers, and lists the model" });
  const scripts = [401, 403, 404, 500].map((status) => ({ status, chunks: [{ utf8: '{"error":{"message":"no"}}' }] }));
  const replay = await startReplayServer(() => scripts.shift());
  const seen = [];
  for (let n = 0; n < 4; n += 1) seen.push((await check(testSource(replay.baseUrl))).ok);
  expect(seen).toEqual([false, false, true, false]);
  expect(replay.requests[0]?.head).toMatch(/^GET \/v1\/models /);
  expect(replay.requests[0]?.head.toLowerCase()).toContain("authorization: bearer sk-test-key-0001");
  await replay.close();
});
