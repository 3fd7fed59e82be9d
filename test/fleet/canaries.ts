import { randomBytes } from "node:crypto";
import { Finding } from "./finding.js";

/** Where a secret must not turn up. */
export const PLACES = ["output", "errors", "telemetry", "redis"] as const;
export type Place = (typeof PLACES)[number];

const WORDS: Readonly<Record<Place, string>> = {
  output: "what processes write",
  errors: "errors of calls",
  telemetry: "telemetry rows and the journal",
  redis: "keys and values in Redis",
};

/** A part this long is a leak too. */
const PART_LENGTH = 12;

/** Secrets that nobody else could have made, for every slot that takes one. */
export function makeCanary(slot: string): string {
  return `sk-canary-${slot}-${randomBytes(18).toString("hex")}`;
}

/** Searches whatever the fleet leaves behind for its secrets, each place under a finding of its own. */
export class CanaryJudge {
  readonly findings: Readonly<Record<Place, Finding>>;
  readonly #forms: readonly (readonly [slot: string, form: string])[];
  /** The end of what each process wrote: a secret may come in two pieces. */
  readonly #tails = new Map<number, string>();

  constructor(secrets: Readonly<Record<string, string>>) {
    const all = PLACES.map((place) => [place, new Finding(`no secret in ${WORDS[place]}`)] as const);
    this.findings = Object.fromEntries(all) as Record<Place, Finding>;
    this.#forms = Object.entries(secrets).flatMap(([slot, secret]) =>
      formsOf(secret).map((form) => [slot, form] as const),
    );
  }

  look(place: Place, text: string): void {
    const found = this.#forms.find(([, form]) => text.includes(form));
    // The secret itself is not repeated.
    this.findings[place].check(found === undefined, () => `the secret of ${found?.[0]} in ${text.length} characters`);
  }

  /** A piece of what a process writes. */
  hear(pid: number, piece: string): void {
    const text = (this.#tails.get(pid) ?? "") + piece;
    this.look("output", text);
    const isFound = this.#forms.some(([, form]) => text.includes(form));
    this.#tails.set(pid, isFound ? "" : text.slice(-200));
  }
}

/** As it is or backwards, in base64 wherever it begins, and long parts of it: random, so that nothing else looks so. */
function formsOf(secret: string): string[] {
  const random = secret.slice(secret.lastIndexOf("-") + 1);
  const plain = [random.slice(0, PART_LENGTH), random.slice(-PART_LENGTH)];
  const shifted = [0, 1, 2].map((before) => Buffer.from(" ".repeat(before) + secret).toString("base64"));
  return [...plain, [...plain[0]!].reverse().join(""), ...shifted.map((text) => text.slice(24, 24 + 2 * PART_LENGTH))];
}
