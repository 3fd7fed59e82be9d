import { expect, test } from "vitest";
import { readRedisUrl } from "./redis-address.js";

test.each([
  ["redis://h", "redis://h", []],
  ["redis://h:6380/3", "redis://h:6380/3", []],
  ["rediss://user:p%40ss@h/", "rediss://user@h", ["p%40ss", "p@ss"]],
  ["redis://alike:alike@h", "redis://h", ["alike", "alike"]],
  ["redis://only-a-key@h", "redis://h", ["only-a-key", "only-a-key"]],
  ["redis://:100%25@[::1]:1", "redis://[::1]:1", ["100%25", "100%"]],
])("%s", (url, shown, secrets) => {
  expect(readRedisUrl(url)).toEqual({ shown, secrets });
});

test.each([
  "",
  "hunter2",
  "http://h",
  "redis://",
  "redis://:hunter2@/1",
  "redis://h/queue",
  "postgres://h",
  "redis://:hunter2%E0%A4%A@[::1]:1",
  "redis://:%ZZhunter2@h",
  "redis://h?password=hunter2",
])("%s is refused without being quoted", (url) => {
  const { problem } = readRedisUrl(url) as { problem: string };
  expect(problem).toMatch(/^(is no|names no|has a )/);
  expect(problem).not.toContain("hunter2");
});
