// G11: events of a 50 MB stream, decoded and parsed, from reads of 300 B and of 16 KB; no socket involved.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { compare } from "../measure.mjs";

const STREAM_BYTES = 50 * 1_024 * 1_024;

/** An event of 288 bytes in the shape that most providers send. */
const eventOf = (n) => {
  const head = `data: {"id":"chatcmpl-bench0123456789","object":"chat.completion.chunk","created":1767225600,"model":"bench-model-1","service_tier":"default","system_fingerprint":"fp_0123456789","choices":[{"index":0,"delta":{"content":"`;
  const tail = `"},"logprobs":null,"finish_reason":null}]}\n\n`;
  return head + `token ${n} `.padEnd(288 - head.length - tail.length, "x") + tail;
};

function readsOf(bytes, readBytes) {
  const text = Buffer.from(Array.from({ length: Math.ceil(bytes / 288) }, (_, n) => eventOf(n)).join(""));
  const reads = [];
  for (let start = 0; start < text.length; start += readBytes) reads.push(text.subarray(start, start + readBytes));
  return { reads, events: text.length / 288 };
}

/** The smallest that is right for this stream alone. */
function byHand(reads) {
  const decoder = new TextDecoder();
  let rest = "";
  let events = 0;
  for (const read of reads) {
    const text = rest + decoder.decode(read, { stream: true });
    let start = 0;
    for (let end = text.indexOf("\n"); end !== -1; end = text.indexOf("\n", start)) {
      if (text.startsWith("data: ", start)) {
        JSON.parse(text.slice(start + 6, end));
        events += 1;
      }
      start = end + 1;
    }
    rest = text.slice(start);
  }
  return events;
}

/** The reader of the chat transport, built from its source: it isn't part of the public API. */
async function ourReader(root) {
  const { build } = await import("vite");
  const folder = await mkdtemp(join(tmpdir(), "polygateway-bench-"));
  try {
    const entry = join(root, "src/transports/sse.ts");
    await build({
      root,
      configFile: false,
      logLevel: "error",
      build: { ssr: entry, outDir: folder, minify: false, rollupOptions: { output: { entryFileNames: "sse.mjs" } } },
    });
    return await import(pathToFileURL(join(folder, "sse.mjs")).href);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

export async function sseCases({ root, scale }) {
  const { SseReader, Utf8Decoder } = await ourReader(root);
  const byReader = (reads) => {
    let events = 0;
    const decoder = new Utf8Decoder();
    const reader = new SseReader((data) => {
      JSON.parse(data);
      events += 1;
      return true;
    });
    for (const read of reads) reader.feed(decoder.decode(read));
    reader.end();
    return events;
  };
  const rows = [];
  for (const readBytes of [300, 16_384]) {
    const { reads, events } = readsOf(STREAM_BYTES * scale, readBytes);
    const checked = (decode) => async () => {
      const found = decode(reads);
      if (found !== events) throw new Error(`${found} events of ${events}`);
    };
    const [, ours] = await compare(
      [
        { name: "hand splitter + JSON.parse", op: checked(byHand) },
        { name: "SseReader + JSON.parse", op: checked(byReader) },
      ],
      { count: 1, concurrency: 1, warmup: 1 },
    );
    rows.push({
      id: "G11",
      what: `SSE decoding, reads of ${readBytes} B: events per CPU second ÷ hand splitter + JSON.parse`,
      value: 1 / ours.cpuRatio,
      goal: 0.85,
      atLeast: true,
      must: true,
      stretch: 0.95,
    });
  }
  return rows;
}
