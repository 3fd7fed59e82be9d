import { type Node, parsePattern } from "./pattern-parts.js";

/**
 * What a pattern may cost. RegExp tries every way to match: a repetition in which one text can be read in two ways takes
 * twice as long for every further character, and each repetition that may begin anywhere in the one before it multiplies
 * the time by the length. Found on the automaton whose states are the places of the pattern, as in "Static Detection of
 * DoS Vulnerabilities in Programs that use Regular Expressions" (Wüstholz et al., 2017).
 */
export interface PatternRisk {
  /** The time doubles with each character. */
  readonly exponential: boolean;
  /** Else it grows with this power of the length, at most. */
  readonly degree: number;
}

/** Repetitions up to this are written out, more are taken for endless: their time is as bad. */
const FEW = 8;
const MANY_OF_ONE = 64;
/** Beyond this it counts which of the turns that must be are the empty ones. */
const MOST_EMPTY = 3;
const MAX_PLACES = 100_000;
const MAX_PAIRS = 3_000_000;
/** Pieces and links made: repetitions of repetitions, long lists inside one. */
const MAX_WORK = 1_000_000;

interface Piece {
  /** In how many ways it matches nothing; 2 = several. */
  readonly empty: number;
  readonly first: ReadonlyMap<number, number>;
  readonly last: ReadonlyMap<number, number>;
}

interface Loop {
  readonly from: number;
  readonly to: number;
}

const NONE: ReadonlyMap<number, number> = new Map();
const EMPTY: Piece = { empty: 1, first: NONE, last: NONE };

/** It does, or it is too large to be judged. */
class Explodes extends Error {}

const several = (ways: number): number => Math.min(2, ways);

function joined(a: ReadonlyMap<number, number>, b: ReadonlyMap<number, number>, weight: number) {
  if (weight === 0 || b.size === 0) return a;
  const out = new Map(a);
  for (const [place, ways] of b) out.set(place, several((out.get(place) ?? 0) + ways * weight));
  return out;
}

/** Characters that stand for all: two sets have one in common when they share one of these. */
function samplesOf(source: string): string[] {
  const found = new Set<string>();
  for (let code = 0; code < 128; code += 1) found.add(String.fromCharCode(code));
  for (const one of "\u00a0éßſK中\u2028\ufeff😀") found.add(one);
  for (const one of source) found.add(one);
  for (const [, hex, braced] of source.matchAll(/\\[ux](?:([\da-fA-F]{2,4})|\{([\da-fA-F]{1,6})\})/g)) {
    const code = Number.parseInt(hex ?? braced ?? "", 16);
    if (code <= 0x10ffff) found.add(String.fromCodePoint(code));
  }
  return [...found];
}

class Automaton {
  readonly sets: bigint[] = [];
  readonly follow: Map<number, number>[] = [];
  /** The outermost endless repetitions; whatever stands in one can be reached from all else in it. */
  readonly loops: Loop[] = [];
  readonly #samples: readonly string[];
  readonly #flags: string;
  readonly #known = new Map<string, bigint>();
  #depth = 0;
  #work = 0;

  constructor(source: string, flags: string) {
    this.#samples = samplesOf(source);
    this.#flags = flags;
  }

  build(node: Node): Piece {
    this.#spend(1);
    if (node.kind === "one") return this.#place(this.#setOf(node.source));
    if (node.kind === "back") return this.#endless(() => this.#place(this.#setOf("[^]")), 0);
    if (node.kind === "repeat") return this.#repeat(node.body, node.min, node.max);
    if (node.kind === "all") return node.parts.reduce((before, part) => this.#then(before, this.build(part)), EMPTY);
    return this.#either(node.parts.map((part) => this.build(part)));
  }

  #either(pieces: readonly Piece[]): Piece {
    return {
      empty: several(pieces.reduce((sum, { empty }) => sum + empty, 0)),
      // Each place stands in one of them only.
      first: new Map(pieces.flatMap(({ first }) => [...first])),
      last: new Map(pieces.flatMap(({ last }) => [...last])),
    };
  }

  #setOf(source: string): bigint {
    let set = this.#known.get(source);
    if (set !== undefined) return set;
    const pattern = new RegExp(`^(?:${source})$`, this.#flags);
    set = 0n;
    for (const [index, sample] of this.#samples.entries()) if (pattern.test(sample)) set |= 1n << BigInt(index);
    this.#known.set(source, set);
    return set;
  }

  #place(set: bigint): Piece {
    if (this.sets.length >= MAX_PLACES) throw new Explodes();
    this.follow.push(new Map());
    const only = new Map([[this.sets.push(set) - 1, 1]]);
    return { empty: 0, first: only, last: only };
  }

  #spend(work: number): void {
    this.#work += work;
    if (this.#work > MAX_WORK) throw new Explodes();
  }

  #link(from: ReadonlyMap<number, number>, to: ReadonlyMap<number, number>): void {
    this.#spend(from.size * to.size);
    for (const [place, ways] of from) this.follow[place] = joined(this.follow[place]!, to, ways) as Map<number, number>;
  }

  #then(a: Piece, b: Piece): Piece {
    this.#link(a.last, b.first);
    return {
      empty: several(a.empty * b.empty),
      first: joined(a.first, b.first, a.empty),
      last: joined(b.last, a.last, b.empty),
    };
  }

  #endless(build: () => Piece, min: number): Piece {
    const from = this.sets.length;
    this.#depth += 1;
    const body = build();
    this.#depth -= 1;
    this.#link(body.last, body.first);
    if (this.#depth === 0 && this.sets.length > from) this.loops.push({ from, to: this.sets.length });
    return min === 0 ? { ...body, empty: 1 } : body;
  }

  #times(node: Node, count: number): Piece {
    let piece = EMPTY;
    for (let turn = 0; turn < count; turn += 1) piece = this.#then(piece, this.build(node));
    return piece;
  }

  #upTo(node: Node, count: number): Piece {
    if (count === 0) return EMPTY;
    return { ...this.#then(this.build(node), this.#upTo(node, count - 1)), empty: 1 };
  }

  #repeat(body: Node, min: number, max: number): Piece {
    const few = body.kind === "one" && min === max ? MANY_OF_ONE : FEW;
    if (max <= few) {
      const least = this.#times(body, min);
      if (min > MOST_EMPTY && least.empty > 0) throw new Explodes();
      return this.#then(least, this.#upTo(body, max - min));
    }
    const build = (): Piece => {
      const piece = this.build(body);
      if (min > MOST_EMPTY && piece.empty > 0) throw new Explodes();
      return piece;
    };
    if (max !== Infinity || min > FEW || min === 1) return this.#endless(build, Math.min(1, min));
    return this.#then(this.#times(body, min), this.#endless(build, 0));
  }

  /** Can some text be read within the loop in two ways that begin and end at the same place? */
  isAmbiguous({ from, to }: Loop): boolean {
    const inside = this.follow.slice(from, to).map((next) => [...next].filter(([at]) => at >= from && at < to));
    if (inside.some((next) => next.some(([, ways]) => ways > 1))) return true;
    const size = to - from;
    const seen = new Set<number>();
    const open: [number, number][] = [];
    let steps = 0;
    // A pair of places that the same text leads to; true when they meet again.
    const advance = (a: number, b: number): boolean => {
      for (const [p] of inside[a - from]!) {
        for (const [q] of inside[b - from]!) {
          steps += 1;
          if (steps > MAX_PAIRS) throw new Explodes();
          if ((this.sets[p]! & this.sets[q]!) === 0n) continue;
          if (p === q) {
            if (a !== b) return true;
            continue;
          }
          const key = (Math.min(p, q) - from) * size + Math.max(p, q) - from;
          if (seen.has(key)) continue;
          seen.add(key);
          open.push([p, q]);
        }
      }
      return false;
    };
    for (let place = from; place < to; place += 1) advance(place, place);
    for (let pair = open.pop(); pair !== undefined; pair = open.pop()) if (advance(...pair)) return true;
    return false;
  }

  /** Longest chain of loops of which each can begin anywhere in the one before. */
  longestChain(): number {
    const lengths: number[] = [];
    for (const [index, loop] of this.loops.entries()) {
      let longest = 1;
      for (let before = 0; before < index; before += 1) {
        if (lengths[before]! >= longest && this.#flowsInto(this.loops[before]!, loop)) longest = lengths[before]! + 1;
      }
      lengths.push(longest);
    }
    return Math.max(0, ...lengths);
  }

  #charactersOf({ from, to }: Loop): bigint {
    return this.sets.slice(from, to).reduce((all, set) => all | set, 0n);
  }

  #flowsInto(a: Loop, b: Loop): boolean {
    const both = this.#charactersOf(a) & this.#charactersOf(b);
    if (both === 0n) return false;
    const open: number[] = [];
    for (let place = a.from; place < a.to; place += 1) open.push(place);
    const seen = new Set(open);
    for (let place = open.pop(); place !== undefined; place = open.pop()) {
      if (place >= b.from && place < b.to) return true;
      for (const next of this.follow[place]!.keys()) {
        if (seen.has(next) || (this.sets[next]! & both) === 0n) continue;
        seen.add(next);
        open.push(next);
      }
    }
    return false;
  }
}

/** `source` must be a valid pattern under these flags. What is too large to be judged counts as exponential. */
export function patternRisk(source: string, flags: string): PatternRisk {
  const { root, looks } = parsePattern(source);
  const degrees: number[] = [];
  try {
    for (const node of [root, ...looks]) {
      const automaton = new Automaton(source, flags);
      automaton.build(node);
      if (automaton.loops.some((loop) => automaton.isAmbiguous(loop))) return { exponential: true, degree: Infinity };
      degrees.push(automaton.longestChain());
    }
  } catch (error) {
    if (error instanceof Explodes) return { exponential: true, degree: Infinity };
    throw error;
  }
  // A search begins at every character, unless the pattern says where.
  const isAnchored = root.kind !== "either" && source.startsWith("^");
  const [own = 0, ...ofLooks] = degrees;
  return { exponential: false, degree: own + Math.max(0, ...ofLooks) + (isAnchored ? 0 : 1) };
}

/** Characters of a text, by the power with which the time may grow: some hundred million steps. */
const MAX_CHARACTERS: readonly number[] = [10_000, 10_000, 10_000, 1_000, 200];

/** How long a text may be that is tried on this pattern; undefined = no length makes it safe. */
export function longestText(source: string, flags: string): number | undefined {
  return MAX_CHARACTERS[patternRisk(source, flags).degree];
}
