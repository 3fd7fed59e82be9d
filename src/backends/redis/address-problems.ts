import { givenKind } from "../../domain/given-value.js";
import { REDIS_URL_FORM, readRedisUrl } from "../../domain/redis-address.js";
import type { ConfigProblem } from "../../errors.js";
import type { RedisAddress } from "./client.js";

/** What is wrong with the way to Redis, from plain JavaScript too; a value may be a password and is not told. */
export function addressProblems(address: RedisAddress, key: string): ConfigProblem[] {
  const { url, client, cluster, options } = address;
  const given = [url, client, cluster].filter((way) => way !== undefined).length;
  if (given > 1 || (given === 0 && options === undefined)) {
    const problem = "needs one of url, client, cluster or options";
    return [{ key, problem, remedy: "Give exactly one way to reach Redis" }];
  }
  return [
    ...(url === undefined ? [] : urlProblems(url, `${key}.url`)),
    ...(client === undefined ? [] : clientProblems(client, `${key}.client`)),
    ...(cluster === undefined ? [] : clusterProblems(cluster, `${key}.cluster`)),
    ...noObject(options, `${key}.options`),
  ];
}

function urlProblems(url: unknown, key: string): ConfigProblem[] {
  const read = readRedisUrl(url);
  return "problem" in read ? [{ key, problem: read.problem, remedy: `Give ${REDIS_URL_FORM}` }] : [];
}

function clientProblems(client: unknown, key: string): ConfigProblem[] {
  const { callBuffer, on } = (client ?? {}) as { readonly callBuffer?: unknown; readonly on?: unknown };
  if (typeof callBuffer === "function" && typeof on === "function") return [];
  return [{ key, problem: "is no ioredis client", remedy: "Give new Redis(...) or new Cluster(...) of ioredis" }];
}

function clusterProblems(cluster: unknown, key: string): ConfigProblem[] {
  const problems = noObject(cluster, key);
  if (problems.length > 0) return problems;
  const { nodes, options } = cluster as { readonly nodes?: unknown; readonly options?: unknown };
  const isList = Array.isArray(nodes) && nodes.length > 0 && nodes.every(isNode);
  const remedy = 'Give at least one node: { host: "10.0.0.1", port: 6379 }, or its redis:// address';
  return [
    ...(isList ? [] : [{ key: `${key}.nodes`, problem: "is no list of nodes", remedy }]),
    ...noObject(options, `${key}.options`),
  ];
}

function isNode(node: unknown): boolean {
  if (typeof node === "string") return node !== "";
  return typeof node === "number" ? Number.isInteger(node) : typeof node === "object" && node !== null;
}

function noObject(value: unknown, key: string): ConfigProblem[] {
  if (value === undefined || (typeof value === "object" && value !== null && !Array.isArray(value))) return [];
  const shown = typeof value === "string" ? "a text" : givenKind(value);
  return [{ key, problem: `is ${shown}, not an object`, remedy: "Give an object, as ioredis takes it" }];
}
