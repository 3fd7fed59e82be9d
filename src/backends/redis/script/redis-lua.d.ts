/** @noSelfInFile */
/// <reference types="@typescript-to-lua/language-extensions" />
// What a Redis server gives to a script (https://redis.io/docs/latest/develop/interact/programmability/lua-api/).
declare const ARGV: string[];

declare namespace redis {
  function call(command: string, ...args: (string | number)[]): unknown;
  function sha1hex(text: string): string;
}

declare namespace cjson {
  function encode(value: unknown): string;
  function decode(text: string): unknown;
}

declare namespace cmsgpack {
  function pack(value: unknown): string;
  function unpack(text: string): unknown;
}

/** Everything that was packed one after the other. @customName cmsgpack.unpack */
declare function unpackedAll(text: string): LuaMultiReturn<unknown[]>;

/** The name of a value's kind. */
declare function type(value: unknown): string;
declare function tonumber(text: unknown): number | undefined;
/** @customName string.format */
declare function formatted(format: string, value: number): string;
/** From the character of this number on; the first is 1. @customName string.sub */
declare function textFrom(text: string, first: number): string;
/** @customName pcall */
declare function attempt(run: () => void): boolean;
/** Whether it could be unpacked, and then all that it holds. @customName pcall */
declare function attemptTo(unpack: (text: string) => unknown, text: string): LuaMultiReturn<[boolean, ...unknown[]]>;
declare function setmetatable(record: object, metatable: object | undefined): void;
declare function getmetatable(record: object): unknown;
