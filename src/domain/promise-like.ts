/**
 * May be waited for. Stores of users return promises of other libraries and realms, which `instanceof Promise` denies.
 */
export function isPromiseLike<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === "function";
}
