// What people use today, as small as it can be written: the bases of the ratios.
import OpenAI from "openai";
import { Pool } from "undici";

export const prompt = "Explain in a few sentences how a token bucket limits the rate of requests. ".repeat(5);
export const messages = [
  { role: "system", content: "You are brief." },
  { role: "user", content: prompt },
];
const body = (stream) =>
  JSON.stringify({
    model: "m",
    messages,
    temperature: 0,
    max_tokens: 500,
    ...(stream ? { stream: true, stream_options: { include_usage: true } } : {}),
  });
const headers = { "content-type": "application/json", authorization: "Bearer sk-bench-0123456789abcdef" };

export const bareRequest = (origin, connections) => {
  const pool = new Pool(origin, { connections });
  return {
    async op() {
      const reply = await pool.request({ path: "/json/chat/completions", method: "POST", headers, body: body(false) });
      const answer = JSON.parse(await reply.body.text());
      if (answer.choices[0].message.content.length === 0) throw new Error("empty");
    },
    close: () => pool.close(),
  };
};

/** Vectors as they come: each decoded from base64, nothing checked. */
export const bareEmbeddings = (origin, connections, texts) => {
  const pool = new Pool(origin, { connections });
  const body = JSON.stringify({ model: "m", input: texts, encoding_format: "base64" });
  return {
    async op() {
      const reply = await pool.request({ path: "/embed/embeddings", method: "POST", headers, body });
      const { data } = JSON.parse(await reply.body.text());
      const vectors = data.map(({ embedding }) => {
        const bytes = Buffer.from(embedding, "base64");
        return new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
      });
      if (vectors.length !== texts.length) throw new Error("wrong vectors");
    },
    close: () => pool.close(),
  };
};

/** A layout as it comes: JSON within JSON, nothing of it looked at. */
export const bareLayout = (origin, body) => {
  const pool = new Pool(origin, { connections: 1 });
  return {
    async op() {
      const reply = await pool.request({ path: "/ocr/file_parse", method: "POST", headers, body });
      const { results } = JSON.parse(await reply.body.text());
      if (JSON.parse(results.document.middle_json).pdf_info.length === 0) throw new Error("empty");
    },
    close: () => pool.close(),
  };
};

/** The limit: undici's dispatch with a handler written for this one answer, and nothing governed. */
export const bareDispatch = (origin, connections) => {
  const pool = new Pool(origin, { connections });
  const timeouts = { headersTimeout: 0, bodyTimeout: 0 };
  return {
    op: () =>
      new Promise((resolve, reject) => {
        const chunks = [];
        const request = { path: "/json/chat/completions", method: "POST", headers, body: body(false), ...timeouts };
        pool.dispatch(request, {
          onRequestStart() {},
          onResponseStart() {},
          onResponseData: (_controller, chunk) => chunks.push(chunk),
          onResponseEnd() {
            const answer = JSON.parse(Buffer.concat(chunks).toString("utf8"));
            if (answer.choices[0].message.content.length === 0) reject(new Error("empty"));
            else resolve();
          },
          onResponseError: (_controller, error) => reject(error),
        });
      }),
    close: () => pool.close(),
  };
};

/** Minimal SSE reader: undici, split at newlines, JSON.parse of every data line. */
export const bareStream = (origin, connections, path) => {
  const pool = new Pool(origin, { connections });
  return {
    async op() {
      const reply = await pool.request({
        path: `/${path}/chat/completions`,
        method: "POST",
        headers,
        body: body(true),
      });
      const decoder = new TextDecoder();
      let rest = "";
      let text = "";
      for await (const bytes of reply.body) {
        rest += decoder.decode(bytes, { stream: true });
        const lines = rest.split("\n");
        rest = lines.pop();
        for (const line of lines) {
          if (!line.startsWith("data: ") || line === "data: [DONE]") continue;
          text += JSON.parse(line.slice(6)).choices[0]?.delta.content ?? "";
        }
      }
      if (text.length === 0) throw new Error("empty");
    },
    close: () => pool.close(),
  };
};

export const openaiSdk = (origin, path) => {
  const client = new OpenAI({ baseURL: `${origin}/${path}`, apiKey: "sk-bench-0123456789abcdef", maxRetries: 0 });
  return {
    async op() {
      const answer = await client.chat.completions.create({ model: "m", messages, temperature: 0, max_tokens: 500 });
      if (answer.choices[0].message.content.length === 0) throw new Error("empty");
    },
    async streamOp() {
      let text = "";
      const stream = await client.chat.completions.create({
        model: "m",
        messages,
        temperature: 0,
        max_tokens: 500,
        stream: true,
        stream_options: { include_usage: true },
      });
      for await (const event of stream) text += event.choices[0]?.delta.content ?? "";
      if (text.length === 0) throw new Error("empty");
    },
  };
};
