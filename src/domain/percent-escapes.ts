/** `%40` and its like in parts of an address. */

/** As it is meant; as it stands where an escape is broken. */
export function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Every % begins an escape, and they make a text. */
export function isDecodable(text: string): boolean {
  return !text.includes("%") || unescaped(text) !== text;
}
