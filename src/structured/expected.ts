/** "Invalid input: expected number, received undefined", "Invalid type: Expected …", as zod and valibot put it. */
const EXPECTED = /\bexpected (.+?)(?:(?:,| but) received .*)?$/is;
/** "price must be a number (was missing)", as arktype puts it. */
const MUST_BE = /\bmust be (.+?)(?: \(was .*\))?$/is;

/** What a validator wants, out of its message: what stands there instead is told beside it. */
export function expectedIn(message: string): string {
  const said = (EXPECTED.exec(message) ?? MUST_BE.exec(message))?.[1]?.trim();
  if (said !== undefined && said !== "") return said;
  return message.trim() === "" ? "something else" : `a value without this problem: ${message.trim()}`;
}
