/** An address of Redis as one text, `redis://[user:password@]host[:port][/database]` or `rediss://`, read without a connection. */

import { isDecodable, unescaped } from "./percent-escapes.js";

const SCHEMES = ["redis:", "rediss:"];

export const REDIS_URL_FORM = "redis://[user:password@]host[:port][/database], or rediss:// for TLS";

export interface RedisUrl {
  /** For people: with the user, never with what is secret. */
  readonly shown: string;
  /** What must stand in no text, in every way in which it may be written. */
  readonly secrets: readonly string[];
}

/** What is wrong never quotes the text: a broken address may be a password in the wrong place. */
export function readRedisUrl(text: unknown): RedisUrl | { readonly problem: string } {
  if (typeof text !== "string") return { problem: "is no text" };
  if (!URL.canParse(text)) return { problem: "is no address" };
  const { protocol, host, pathname, password, username, search, hash } = new URL(text);
  if (!SCHEMES.includes(protocol)) return { problem: "is no address of Redis" };
  if (host === "") return { problem: "names no host" };
  if (!/^\/?\d*$/.test(pathname)) return { problem: "has a path that is no database number" };
  if (search !== "" || hash !== "") return { problem: "has a query: such options can be given in code alone" };
  if (![password, username].every(isDecodable))
    return { problem: "has a % in user or password that begins no escape: % itself is written as %25" };
  // Some services know the key by the user's place alone.
  const [user, secret] = password === "" ? ["", username] : [username, password];
  const secrets = [secret, unescaped(secret)];
  const isShown = user !== "" && !secrets.includes(user);
  return {
    shown: `${protocol}//${isShown ? `${user}@` : ""}${host}${pathname === "/" ? "" : pathname}`,
    secrets: secrets.filter((secret) => secret !== ""),
  };
}
