/**
 * ioredis writes to stderr by itself where the user may not ask INFO, and where a password meets a server that wants none.
 * What matters of it comes with the first command, as an error in our words.
 */

type Send = (...args: unknown[]) => Promise<unknown>;
type Callback = (error: unknown, reply?: unknown) => void;

const HARMLESS: Readonly<Record<"info" | "auth", RegExp>> = {
  info: /NOPERM/,
  auth: /no password is set|without any password configured|wrong number of arguments for 'auth'/,
};

/** Of a client made here: what it asks while it connects is answered as if nothing were to be said of it. */
export function quieted<Client extends object>(client: Client): Client {
  for (const [name, pattern] of Object.entries(HARMLESS)) muffle(client as Record<string, unknown>, name, pattern);
  return client;
}

function muffle(client: Record<string, unknown>, name: string, harmless: RegExp): void {
  const send = client[name];
  if (typeof send !== "function") return;
  client[name] = (...args: unknown[]): Promise<unknown> => {
    const callback = typeof args.at(-1) === "function" ? (args.pop() as Callback) : null;
    const answer = (send as Send).apply(client, args).catch((error: unknown) => {
      if (harmless.test(String((error as Error | null)?.message))) return "";
      throw error;
    });
    if (callback !== null) answer.then((reply) => callback(null, reply), callback);
    return answer;
  };
}
