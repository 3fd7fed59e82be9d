// The benchmark's provider: a process of its own that answers fixed bytes, so that it is never the bottleneck.
// Prints its port as the first line. Paths: /embed (vectors) /ocr (a layout) /json /sse20 /burst /paced (one event per 5 ms), each + /chat/completions.
import { createServer } from "node:net";

const chunk = (delta, finish = null, extra = {}) =>
  `data: ${JSON.stringify({
    id: "chatcmpl-bench",
    object: "chat.completion.chunk",
    created: 1_700_000_000,
    model: "bench-model-2026",
    service_tier: "default",
    system_fingerprint: "fp_0123456789",
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
    ...extra,
  })}\n\n`;

const usage = { prompt_tokens: 120, completion_tokens: 200, total_tokens: 320 };

function events(count) {
  const list = [chunk({ role: "assistant", content: "" })];
  for (let i = 0; i < count - 3; i += 1) list.push(chunk({ content: ` word${i % 10}` }));
  list.push(
    chunk({}, "stop"),
    `data: ${JSON.stringify({ id: "chatcmpl-bench", object: "chat.completion.chunk", created: 1_700_000_000, model: "bench-model-2026", choices: [], usage })}\n\n`,
    "data: [DONE]\n\n",
  );
  return list;
}

const answer = JSON.stringify({
  id: "chatcmpl-bench",
  object: "chat.completion",
  created: 1_700_000_000,
  model: "bench-model-2026",
  choices: [{ index: 0, message: { role: "assistant", content: "lorem ipsum ".repeat(70) }, finish_reason: "stop" }],
  usage,
});

const sseHead = (length) =>
  `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n${length === null ? "transfer-encoding: chunked" : `content-length: ${length}`}\r\n\r\n`;
const whole = (list) => {
  const body = list.join("");
  return Buffer.from(sseHead(Buffer.byteLength(body)) + body);
};

const vector = Float32Array.from({ length: 1_024 }, (_, at) => Math.sin(at));
const embedding = Buffer.from(vector.buffer).toString("base64");
const embeddings = JSON.stringify({
  object: "list",
  model: "bench-model-2026",
  data: Array.from({ length: 100 }, (_, index) => ({ object: "embedding", index, embedding })),
  usage: { prompt_tokens: 4_000, total_tokens: 4_000 },
});

/** A page of 20 paragraphs as MinerU describes it, about 14 KB. */
function layoutPage(index) {
  const blocks = Array.from({ length: 20 }, (_, n) => {
    const bbox = [60, 30 + 35 * n, 540, 60 + 35 * n];
    const content = 'What a token bucket does with a rate, "quoted" and in 中文.';
    const lines = [
      {
        bbox,
        spans: [
          { bbox, type: "text", score: 0.98, content },
          { bbox, type: "inline_equation", content: "a^2+b^2", score: 0.9 },
        ],
      },
    ];
    return { type: n === 0 ? "title" : "text", bbox, index: n, angle: 0, lines: [...lines, ...lines] };
  });
  return { page_idx: index, page_size: [612, 792], preproc_blocks: blocks, para_blocks: [], discarded_blocks: [] };
}

const LAYOUT_BYTES = 3_500_000;
const pageBytes = Buffer.byteLength(JSON.stringify(JSON.stringify(layoutPage(0))));
const pdfInfo = Array.from({ length: Math.round(LAYOUT_BYTES / pageBytes) }, (_, index) => layoutPage(index));
const layout = JSON.stringify({ results: { document: { middle_json: JSON.stringify({ pdf_info: pdfInfo }) } } });

const replies = {
  embed: Buffer.from(
    `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(embeddings)}\r\n\r\n${embeddings}`,
  ),
  ocr: Buffer.from(
    `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(layout)}\r\n\r\n${layout}`,
  ),
  json: Buffer.from(
    `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(answer)}\r\n\r\n${answer}`,
  ),
  sse20: whole(events(20)),
  burst: whole(events(202)),
};
const pacedEvents = events(202).map((text) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`);

function pace(socket, next) {
  socket.write(sseHead(null));
  let index = 0;
  const timer = setInterval(() => {
    if (index < pacedEvents.length) return void socket.write(pacedEvents[index++]);
    clearInterval(timer);
    socket.write("0\r\n\r\n");
    next();
  }, 5);
  socket.on("close", () => clearInterval(timer));
}

const server = createServer((socket) => {
  socket.setNoDelay(true);
  socket.on("error", () => {});
  let pending = Buffer.alloc(0);
  let busy = false;
  const serve = () => {
    while (!busy) {
      const headEnd = pending.indexOf("\r\n\r\n");
      if (headEnd < 0) return;
      const head = pending.toString("latin1", 0, headEnd);
      const length = Number(/content-length: *(\d+)/i.exec(head)?.[1] ?? 0);
      if (pending.length < headEnd + 4 + length) return;
      pending = pending.subarray(headEnd + 4 + length);
      const kind = /^POST \/(\w+)/.exec(head)?.[1] ?? "json";
      if (kind !== "paced") {
        socket.write(replies[kind] ?? replies.json);
        continue;
      }
      busy = true;
      pace(socket, () => {
        busy = false;
        serve();
      });
    }
  };
  socket.on("data", (data) => {
    pending = pending.length === 0 ? data : Buffer.concat([pending, data]);
    serve();
  });
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.on("disconnect", () => process.exit(0));
