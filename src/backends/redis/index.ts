/** `polygateway/redis`: what several processes and machines share through Redis. Needs the package ioredis. */

export { RedisCache, type RedisCacheOptions } from "./cache.js";
export type { RedisAddress, RedisClient } from "./client.js";
export type { RedisConnectionOptions } from "./connection.js";
export { RedisFailure, type RedisFailureKind } from "./failure.js";
export { RedisGovernor, type RedisGovernorOptions } from "./governor.js";
