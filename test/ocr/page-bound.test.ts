import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { OcrClient } from "../../src/gateway/ocr-client.js";
import { RequestRejectedError, toPixels } from "../../src/index.js";
import { PricingTable } from "../../src/telemetry/pricing.js";
import { createMemoryRecorder } from "../../src/testing/memory-recorder.js";
import { pdfOf, pngOf, tiffOf } from "./pictures.js";

/** What a server says of pages that were never sent, and inputs that are none. */

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).toReversed()) await close();
});

async function readWith(transport: "mistral" | "paddle", answer: unknown) {
  const server = createServer((request, response) => {
    request.resume().on("end", () => {
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  open.push(() => server.close());
  const recorder = createMemoryRecorder();
  const { port } = server.address() as AddressInfo;
  const client = new OcrClient({
    scope: "OCR",
    sources: [{ name: "a", baseUrl: `http://127.0.0.1:${port}`, apiKey: "none", model: "m", transport }],
    retry: { maxAttempts: 1 },
    telemetry: recorder,
    pricing: new PricingTable({ m: { perPage: 0.01 } }),
    proxyEnv: {},
  });
  open.push(() => client.close());
  return { client, recorder };
}

const claims = (pages: number) => ({
  pages: [{ index: 0, markdown: "text", dimensions: { width: 100, height: 50 } }],
  model: "m",
  usage_info: { pages_processed: pages },
});

/** A TIFF of two images: the first directory points at a copy of itself. */
function twoFrames(): Buffer {
  const one = tiffOf(10, 10);
  const two = Buffer.concat([one, one.subarray(8)]);
  two.writeUInt32LE(one.length, 34);
  return two;
}

describe("pages that a server claims", () => {
  test.each([
    ["of a picture is one", pngOf(100, 50), 200_000, 1],
    ["of a TIFF are its images", twoFrames(), 200_000, 2],
    ["of a PDF are at most what can be in it", pdfOf(2), 1_000_000_000, Math.floor(pdfOf(2).length / 16)],
    ["of a PDF are believed within that", pdfOf(2), 2, 2],
  ])("%s", async (_, image, claimed, believed) => {
    const { client, recorder } = await readWith("mistral", claims(claimed));
    const { pageCount, cost } = await client.recognizeText(image);
    expect([pageCount, cost]).toEqual([believed, believed / 100]);
    await client.close();
    expect(recorder.rows[0]?.costNanos).toBe(BigInt(believed) * 10_000_000n);
  });

  test("of a picture, beyond its one, go with what stands on them", async () => {
    const page = (text: string) => ({
      markdown: { text },
      prunedResult: {
        width: 100,
        height: 50,
        parsing_res_list: [{ block_label: "text", block_bbox: [0, 0, 50, 25], block_content: text }],
      },
    });
    const pages = Array.from({ length: 2_000 }, (_, index) => page(`page ${index}`));
    const { client } = await readWith("paddle", { errorCode: 0, result: { layoutParsingResults: pages } });
    const layout = await client.parseLayout(pngOf(100, 50));
    expect(layout).toMatchObject({ pageCount: 1, droppedElements: 1_999, pages: [{ page: 1 }] });
    expect(layout.elements.map(({ text, page: number }) => [text, number])).toEqual([["page 0", 1]]);
  });
});

describe("what is no input", () => {
  test("bytes whose memory was handed over are told, before anything is sent", async () => {
    const { client, recorder } = await readWith("mistral", claims(1));
    const view = new Uint8Array(pngOf(10, 10));
    const memory = view.buffer;
    structuredClone(memory, { transfer: [memory] });
    for (const input of [memory, view]) {
      const outcome = client.recognizeText(input);
      await expect(outcome).rejects.toBeInstanceOf(RequestRejectedError);
      await expect(outcome).rejects.toThrow(/handed over \(detached\); nothing was sent/);
    }
    await client.close();
    expect(recorder.rows.filter(({ outcome }) => outcome === "success")).toEqual([]);
  });

  test("a box or a size that is none", () => {
    for (const box of [null, undefined, [0, 0, 1], [0, 0, 1, Number.NaN], "0011", [0, 0, 1, "1"]]) {
      expect(() => toPixels(box as never, 10, 10)).toThrow(/toPixels: bbox must be \[x0, y0, x1, y1\]/);
      expect(() => toPixels(box as never, 10, 10)).toThrow(RequestRejectedError);
    }
    for (const size of [0, -1, Number.NaN, null, "10"]) {
      expect(() => toPixels([0, 0, 1, 1], size as never, 10)).toThrow(/width and height must be numbers above 0/);
    }
    expect(toPixels([0, 0, 0.5, 1], 10, 20)).toEqual([0, 0, 5, 20]);
  });
});
