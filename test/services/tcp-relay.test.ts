import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { expect, test } from "vitest";
import { startTcpRelay } from "./tcp-relay.js";

test("an answer is lost after the server has done what it was asked", async () => {
  const heard: string[] = [];
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", (bytes) => {
      heard.push(bytes.toString());
      socket.write(`done ${bytes}`);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const relay = await startTcpRelay((server.address() as AddressInfo).port);
  const client = connect(relay.port, "127.0.0.1");
  const answers: string[] = [];
  client.on("data", (bytes) => answers.push(bytes.toString()));
  client.on("error", () => {});
  client.write("one");
  await once(client, "data");
  relay.loseReplies();
  const closed = new Promise((resolve) => client.once("close", resolve));
  client.write("two");
  await closed;
  expect(heard).toEqual(["one", "two"]);
  expect(answers).toEqual(["done one"]);
  expect(relay.repliesLost).toBe(1);
  // Who comes later is served.
  const later = connect(relay.port, "127.0.0.1");
  later.write("three");
  expect(String((await once(later, "data"))[0])).toBe("done three");
  later.destroy();
  await relay.close();
  server.close();
});
