import { afterEach, describe, expect, test } from "vitest";
import { ConfigError } from "../../errors.js";
import { readZip } from "../../transports/ocr/zip.js";
import { type MinerUServerOptions, startMinerUServer } from "./mineru-server.js";
import { type MonkeyOcrServerOptions, startMonkeyOcrServer } from "./monkey-ocr-server.js";

const started: { stop(): Promise<void> }[] = [];
afterEach(async () => {
  await Promise.all(started.splice(0).map((server) => server.stop()));
});

async function monkey(options: MonkeyOcrServerOptions = {}) {
  const server = await startMonkeyOcrServer(options);
  started.push(server);
  return server;
}

async function mineru(options: MinerUServerOptions = {}) {
  const server = await startMinerUServer(options);
  started.push(server);
  return server;
}

function form(field = "file", name = "scan.png", content = "a picture"): FormData {
  const data = new FormData();
  data.set(field, new Blob([content]), name);
  return data;
}

async function post(url: string, body: FormData) {
  const response = await fetch(url, { method: "POST", body });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

describe("the simulated MonkeyOCR server", () => {
  test("has the endpoints of the real one", async () => {
    const { origin } = await monkey();
    expect(await (await fetch(origin)).json()).toMatchObject({ version: "1.0.0" });
    for (const task of ["text", "formula", "table"]) {
      const { body } = await post(`${origin}/ocr/${task}`, form());
      expect(body).toMatchObject({ success: true, task_type: task, content: expect.stringMatching(/./) });
    }
    expect((await post(`${origin}/ocr/chart`, form())).status).toBe(404);
    expect((await fetch(`${origin}/parse`)).status).toBe(405);
    expect((await post(`${origin}/parse`, form("image"))).body).toEqual({
      detail: [{ loc: ["body", "file"], msg: "Field required", type: "missing" }],
    });
    expect((await post(`${origin}/ocr/text`, form("file", "scan.gif"))).body).toMatchObject({
      success: false,
      message: "OCR task failed: 400: Unsupported file type: .gif. Allowed: .pdf, .jpg, .jpeg, .png",
    });
    const refused = await post(`${origin}/parse`, form("file", "scan"));
    expect(refused).toMatchObject({ status: 500, body: { detail: expect.stringMatching(/^Parsing failed: 400: /) } });
  });

  test("answers each return_type, archives by default, split ones by pages", async () => {
    const { origin } = await monkey({ pages: 2 });
    const pdf = () => form("file", "scan.pdf");
    const list = await post(`${origin}/parse?return_type=content_list_json`, pdf());
    expect(JSON.parse(String(list.body.content))).toHaveLength(2);
    const unknown = await post(`${origin}/parse?return_type=x`, pdf());
    expect(unknown.body).toMatchObject({
      success: true,
      content: "Unknown return_type: x",
      content_type: "text/plain",
    });
    for (const path of ["/parse", "/parse/split"]) {
      const { body } = await post(origin + path, pdf());
      expect(body).toMatchObject({ content: null, content_type: null });
      const archive = Buffer.from(await (await fetch(origin + String(body.download_url))).arrayBuffer());
      const { members } = await readZip(archive, "_middle.json");
      expect(members).toHaveLength(path === "/parse" ? 1 : 2);
    }
    expect((await fetch(`${origin}/static/other.zip`)).status).toBe(404);
  });

  test("keeps a ledger: names, digests, how often each came, how many at once", async () => {
    const server = await monkey({ latencyMs: 30, apiKeys: ["sk-good-key-0001"] });
    const { origin } = server;
    expect((await post(`${origin}/ocr/text`, form())).status).toBe(401);
    const headers = { authorization: "Bearer sk-good-key-0001" };
    const contents = ["one", "two", "one"];
    await Promise.all(
      contents.map((content) =>
        fetch(`${origin}/ocr/text`, { method: "POST", headers, body: form("file", "scan.png", content) }),
      ),
    );
    expect(server.peakConcurrency).toBe(3);
    expect([...server.uploads().values()].sort()).toEqual([1, 1, 2]);
    expect(server.ledger().map(({ outcome }) => outcome)).toEqual(["error", "answered", "answered", "answered"]);
    expect(JSON.stringify(server.ledger())).not.toContain("sk-good-key-0001");
  });

  test("meets faults so often as they are to come", async () => {
    const server = await monkey({ faults: { overloaded: true, times: 2 } });
    const statuses = async () => {
      const all: number[] = [];
      for (let n = 0; n < 3; n += 1) all.push((await post(`${server.origin}/parse`, form())).status);
      return all;
    };
    expect(await statuses()).toEqual([503, 503, 200]);
    server.change({ faults: { failureRate: 1, times: 1 } });
    expect(await statuses()).toEqual([500, 200, 200]);
  });
});

test("the simulated MinerU server has the endpoints of the real one", async () => {
  const { origin } = await mineru({ pages: 4 });
  expect(await (await fetch(`${origin}/health`)).json()).toMatchObject({ status: "healthy", queued_tasks: 0 });
  const { body } = await post(`${origin}/file_parse`, form("files", "scan.pdf"));
  expect(body).toMatchObject({
    status: "completed",
    results: { scan: { md_content: expect.stringMatching(/page 4/) } },
  });
  expect(await post(`${origin}/file_parse`, form("files", "scan.exe"))).toEqual({
    status: 400,
    body: { error: "Unsupported file type: .exe" },
  });
  expect((await post(`${origin}/file_parse`, form())).status).toBe(422);
  expect((await fetch(`${origin}/other`)).status).toBe(404);
  expect((await fetch(`${origin}/file_parse`)).status).toBe(405);
});

test.each<[unknown, RegExp]>([
  [{ seed: -1 }, /seed = -1: not accepted/],
  [{ pages: 0 }, /pages = 0: not accepted/],
  [{ faults: { failureRate: 2 } }, /faults.failureRate = 2: not accepted/],
  [{ faults: { times: 0 } }, /faults.times = 0/],
  [{ faults: { hangAt: [0] } }, /faults.hangAt: is no list of whole numbers from 1/],
  [{ faults: { hangAt: 3 } }, /faults.hangAt/],
  [{ faults: { brokenBox: true } }, /Did you mean faults.brokenBoxes/],
  [{ latency: 5 }, /Did you mean latencyMs/],
  [{ faults: 7 }, /faults: is no object/],
  [7, /options: are no object/],
])("options %j are refused by both, naming them", async (options, problem) => {
  for (const start of [monkey, mineru]) {
    const error = await start(options as MonkeyOcrServerOptions).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ConfigError);
    expect(String(error)).toMatch(problem);
  }
  const server = await monkey();
  if (typeof options === "object") expect(() => server.change(options as MonkeyOcrServerOptions)).toThrow(ConfigError);
});

test("an unknown kind of broken archive is refused by name", async () => {
  const faults = { archive: "torn" } as unknown as NonNullable<MonkeyOcrServerOptions["faults"]>;
  await expect(monkey({ faults })).rejects.toThrow(/faults.archive = torn: unknown value. Use cut or crc/);
});
