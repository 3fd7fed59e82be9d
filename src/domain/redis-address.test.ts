import { expect, test } from "vitest";
import { readRedisUrl } from "./redis-address.js";

test.each([
  ["redis://h", "redis://h", []],
  ["redis://h:6380/3", "redis://h:6380/3", []],
  ["rediss://user:p%40ss@h/", "rediss://h", ["p%40ss", "p@ss"]],
  ["redis://only-a-key@h", "redis://h", ["only-a-key", "only-a-key"]],
  ["redis://:%E0%A4%A@[::1]:1", "redis://[::1]:1", ["%E0%A4%A", "%E0%A4%A"]],
])("%s", (url, shown, secrets) => {
  expect(readRedisUrl(url)).toEqual({ shown, secrets });
});

test.each(["", "hunter2", "http://h", "redis://", "redis://:hunter2@/1", "redis://h/queue", "postgres://h"])(
  "%s is refused without being quoted",
  (url) => {
    const { problem } = readRedisUrl(url) as { problem: string };
    expect(problem).toMatch(/^(is no|names no|has a path)/);
    expect(problem).not.toContain("hunter2");
  },
);
