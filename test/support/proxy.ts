import { createServer, request as forward } from "node:http";
import { type AddressInfo, connect } from "node:net";

export interface LoopbackProxy {
  readonly url: string;
  /** `host:port` of everything that went through, tunnelled or forwarded. */
  readonly targets: readonly string[];
  [Symbol.asyncDispose](): Promise<void>;
}

/** A forward proxy on loopback that speaks both ways: CONNECT tunnels and absolute request addresses. */
export async function startLoopbackProxy(): Promise<LoopbackProxy> {
  const targets: string[] = [];
  const server = createServer((request, response) => {
    const { host, pathname, search, hostname, port } = new URL(request.url ?? "");
    targets.push(host);
    const { method, headers } = request;
    const onward = forward({ hostname, port, path: pathname + search, method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    onward.on("error", () => response.destroy());
    request.pipe(onward);
  });
  server.on("connect", (request, socket, head) => {
    targets.push(request.url ?? "");
    const [host, port] = (request.url ?? "").split(":");
    const onward = connect(Number(port), host, () => {
      socket.write("HTTP/1.1 200 Connection Established\r\n\r\n");
      if (head.length > 0) onward.write(head);
      onward.pipe(socket).pipe(onward);
    });
    onward.on("error", () => socket.destroy());
    socket.on("error", () => onward.destroy());
    socket.on("close", () => onward.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    targets,
    [Symbol.asyncDispose]: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
