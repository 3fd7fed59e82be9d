/** Reads a pattern that RegExp has accepted into what matters for its running time. */

export type Node =
  /** The source of what matches one character. */
  | { readonly kind: "one"; readonly source: string }
  /** What an earlier group matched: any text. */
  | { readonly kind: "back" }
  | { readonly kind: "all" | "either"; readonly parts: readonly Node[] }
  | { readonly kind: "repeat"; readonly body: Node; readonly min: number; readonly max: number };

export interface Parsed {
  readonly root: Node;
  /** Bodies of lookaheads and lookbehinds: each is matched on its own. */
  readonly looks: readonly Node[];
}

const NOTHING: Node = { kind: "all", parts: [] };
const CLASS = /\[(?:\\[\s\S]|[^\]\\])*\]/y;
const BACK = /\\(?:[1-9]\d*|k<[^>]*>)/y;
const BOUNDARY = /\\[bB]/y;
const ESCAPE =
  /\\(?:[pP]\{[^}]*\}|u\{[^}]*\}|u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|u[\da-fA-F]{4}|x[\da-fA-F]{2}|c[A-Za-z]|[\s\S])/y;
const OPENING = /\((?:\?(?:<?[=!]|<[^>]*>|[a-z-]*:))?/y;
const REPEAT = /(?:([*+?])|\{(\d+)(?:(,)(\d*))?\})\??/y;
const ONE = /[\s\S]/uy;

export function parsePattern(source: string): Parsed {
  const looks: Node[] = [];
  let at = 0;

  function taken(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = at;
    const match = pattern.exec(source);
    if (match !== null) at = pattern.lastIndex;
    return match;
  }

  function group(opening: string): Node {
    const body = either();
    at += 1;
    if (!/^\(\?<?[=!]/.test(opening)) return body;
    looks.push(body);
    return NOTHING;
  }

  function atom(): Node {
    const opening = taken(OPENING);
    if (opening !== null) return group(opening[0]);
    if (taken(BOUNDARY) !== null) return NOTHING;
    if (taken(BACK) !== null) return { kind: "back" };
    const found = (taken(CLASS) ?? taken(ESCAPE) ?? taken(ONE))![0];
    return found === "^" || found === "$" ? NOTHING : { kind: "one", source: found };
  }

  function repeated(body: Node): Node {
    const match = taken(REPEAT);
    if (match === null) return body;
    const [, sign, least, comma, most] = match;
    if (sign !== undefined)
      return { kind: "repeat", body, min: sign === "+" ? 1 : 0, max: sign === "?" ? 1 : Infinity };
    const min = Number(least);
    return { kind: "repeat", body, min, max: comma === undefined ? min : most === "" ? Infinity : Number(most) };
  }

  function all(): Node {
    const parts: Node[] = [];
    while (at < source.length && source[at] !== "|" && source[at] !== ")") parts.push(repeated(atom()));
    return { kind: "all", parts };
  }

  function either(): Node {
    const parts = [all()];
    while (source[at] === "|") {
      at += 1;
      parts.push(all());
    }
    return parts.length === 1 ? parts[0]! : { kind: "either", parts };
  }

  return { root: either(), looks };
}
