import { afterEach, describe, expect, test } from "vitest";
import { ConfigError } from "../../errors.js";
import { startMistralOcrServer } from "./mistral-server.js";
import { startPaddleServer } from "./paddle-server.js";

const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

async function startPaddle(...options: Parameters<typeof startPaddleServer>) {
  const server = await startPaddleServer(...options);
  stops.push(server.stop);
  return server;
}

function post(url: string, body: unknown, headers: Record<string, string> = {}, signal?: AbortSignal) {
  return fetch(url, {
    method: "POST",
    body: JSON.stringify(body),
    headers,
    ...(signal === undefined ? {} : { signal }),
  });
}

const IMAGE = { file: "aGVsbG8=", fileType: 1 };

describe("options", () => {
  const problemsOf = async (promise: Promise<unknown>) => {
    const error = await promise.then(() => null).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(ConfigError);
    return (error as ConfigError).problems.map(({ key, problem, remedy }) => `${key} ${problem}. ${remedy}`);
  };

  test("every bad one is told at once, by its path, with what was meant", async () => {
    const options = { port: 70_000, latencyMs: -1, faluts: {}, faults: { times: 0, staus: 500, errorCode: 0.5 } };
    expect(await problemsOf(startPaddleServer(options as never))).toEqual([
      "faluts is no option of the simulated PaddleX server. Did you mean faults?",
      "faults.staus is no option of the simulated PaddleX server. Did you mean faults.status?",
      "port not accepted. Give a whole number from 0 to 65535",
      "latencyMs not accepted. Give a whole number of at least 0",
      "faults.times not accepted. Give a whole number of at least 1",
      "faults.errorCode not accepted. Give a whole number of at least 1",
    ]);
    expect(await problemsOf(startMistralOcrServer({ faults: 5 } as never))).toEqual([
      expect.stringContaining("faults is no object"),
    ]);
    expect(await problemsOf(startMistralOcrServer({ faults: { hang: true, status: 500 } }))).toEqual([
      "faults.status + faults.hang exclude each other. A request meets one fault: choose one of them",
    ]);
  });

  test("changes are checked, too", async () => {
    const server = await startPaddle();
    expect(() => server.change({ faults: { status: 200 } })).toThrow(ConfigError);
    expect(() => server.change({ apiKeys: ["x"], fault: {} } as never)).toThrow("Did you mean faults?");
  });
});

describe("the simulated servers", () => {
  test("answer over HTTP, keep the connection, and write down what arrived with the key masked", async () => {
    const server = await startPaddle({ apiKeys: ["token-0123456789"], latencyMs: 5 });
    const headers = { authorization: "token token-0123456789" };
    const answer = await post(`${server.baseUrl}/layout-parsing`, IMAGE, headers);
    expect(await answer.json()).toMatchObject({ errorCode: 0, errorMsg: "Success" });
    const refused = await post(`${server.baseUrl}/layout-parsing`, IMAGE, { authorization: "Bearer token-0123456789" });
    expect(refused.status).toBe(401);
    expect(await refused.json()).toMatchObject({ errorCode: 401 });
    const [first, second] = server.ledger();
    expect(first).toMatchObject({ id: 1, status: 200, outcome: "answered", body: IMAGE });
    expect(first?.apiKey).not.toContain("0123456789");
    expect(second).toMatchObject({ id: 2, status: 401, outcome: "unauthorized", apiKey: "" });
    expect(first!.endedAtMs!).toBeGreaterThanOrEqual(first!.arrivedAtMs);
  });

  test("refuse what the real ones refuse", async () => {
    const paddle = await startPaddle();
    const statusOf = async (path: string, body: unknown) => (await post(`${paddle.origin}${path}`, body)).status;
    expect(await statusOf("/layout-parsing", { file: "no base64!", fileType: 1 })).toBe(422);
    expect(await statusOf("/layout-parsing", { ...IMAGE, fileType: 2 })).toBe(422);
    expect(await statusOf("/elsewhere", IMAGE)).toBe(404);
    expect((await fetch(`${paddle.origin}/layout-parsing`)).status).toBe(405);
    const mistral = await startMistralOcrServer();
    stops.push(mistral.stop);
    const document = { type: "image_url", image_url: "http://elsewhere/a.png" };
    expect((await post(`${mistral.baseUrl}/ocr`, { model: "mistral-ocr-latest", document })).status).toBe(422);
  });

  test("fail as often as they are told, and forget it with the next change", async () => {
    const server = await startPaddle({ faults: { status: 503, times: 2 } });
    const statusOf = async () => (await post(`${server.baseUrl}/layout-parsing`, IMAGE)).status;
    expect([await statusOf(), await statusOf(), await statusOf()]).toEqual([503, 503, 200]);
    // A look at its health meets no fault.
    server.change({ faults: { status: 500, times: 1 } });
    expect((await fetch(`${server.origin}/health`)).status).toBe(200);
    expect([await statusOf(), await statusOf()]).toEqual([500, 200]);
  });

  test("a hang is a hang until the client leaves", async () => {
    const server = await startPaddle({ faults: { hang: true } });
    const controller = new AbortController();
    const pending = post(`${server.baseUrl}/layout-parsing`, IMAGE, {}, controller.signal).catch(() => "left");
    await expect.poll(() => server.ledger()[0]?.outcome).toBe("hang");
    expect(server.ledger()[0]?.endedAtMs).toBeNull();
    controller.abort();
    expect(await pending).toBe("left");
    await expect.poll(() => server.ledger()[0]?.endedAtMs).not.toBeNull();
  });

  test("stop ends everything, and may be repeated", async () => {
    const server = await startPaddle({ faults: { hang: true } });
    const pending = post(`${server.baseUrl}/layout-parsing`, IMAGE).catch(() => "cut");
    await expect.poll(() => server.ledger().length).toBe(1);
    await server.stop();
    expect(await pending).toBe("cut");
    await server.stop();
  });
});
