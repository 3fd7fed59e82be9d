/** @noSelfInFile */
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

/** The name of a value's kind. */
declare function type(value: unknown): string;
declare function tonumber(text: unknown): number | undefined;
/** @customName string.format */
declare function formatted(format: string, value: number): string;
/** @customName pcall */
declare function attempt(run: () => void): boolean;
