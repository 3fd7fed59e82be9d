import { didYouMean } from "../domain/did-you-mean.js";
import { showWord } from "../domain/secret.js";
import { below } from "./file-tree.js";
import { isPlainObject } from "./values.js";

/** What is wrong with one place of a value, as half a sentence. */
export interface ShapeProblem {
  /** `streamOptions`, `thinking[0].budget.min`; empty = the value as a whole. */
  readonly place: string;
  /** Only true or false may stand there. */
  readonly isFlag?: boolean;
  readonly problem: string;
  readonly remedy: string;
}

/** What a value may look like: it judges one, and says in words what it accepts, for the documentation. */
export interface Shape {
  readonly accepted: string;
  /** `place` is how the place is called in texts. */
  readonly judge: (value: unknown, place: string, found: ShapeProblem[]) => void;
  /** Is it joined field by field with what lies below, or does it replace that as a whole? */
  readonly joined?: true;
  /** The fields of an object, or of each object of a list. */
  readonly fields?: Readonly<Record<string, Shape>>;
  readonly required?: readonly string[];
}

export function accept(fits: (value: unknown) => boolean, accepted: string): Shape {
  return {
    accepted,
    judge: (value, place, found) => {
      if (!fits(value))
        found.push({ place, problem: `has a wrong value at ${place}`, remedy: `Accepted there: ${accepted}.` });
    },
  };
}

export function list(of: Shape): Shape {
  const { fields, required } = of;
  return {
    accepted: fields === undefined ? `a list of: ${of.accepted}` : "a list of objects",
    ...(fields !== undefined && { fields }),
    ...(required !== undefined && { required }),
    judge: (value, place, found) => {
      if (!Array.isArray(value)) {
        found.push({ place, problem: `has no list at ${place}`, remedy: "Give a list there." });
        return;
      }
      for (const [index, entry] of value.entries()) of.judge(entry, `${place}[${index}]`, found);
    },
  };
}

/** Every name is allowed, or only those of a list, which the documentation may call by one word. */
export function record(of: Shape, names?: readonly string[], called = names?.join(" or ") ?? "a name"): Shape {
  return {
    accepted: `an object, ${called} → ${of.accepted}`,
    joined: true,
    judge: (value, place, found) => {
      if (!isPlainObject(value)) {
        found.push({ place, problem: `has no object at ${place}`, remedy: "Give an object there." });
        return;
      }
      for (const [name, entry] of Object.entries(value)) {
        if (name === "__proto__" || (names !== undefined && !names.includes(name)))
          found.push(unknownName(name, place, names ?? []));
        else of.judge(entry, `${place}.${name}`, found);
      }
    },
  };
}

export function object(fields: Readonly<Record<string, Shape>>, required: readonly string[] = []): Shape {
  return {
    accepted: "an object",
    joined: true,
    fields,
    required,
    judge: (value, place, found) => {
      if (!isPlainObject(value)) {
        found.push({ place, problem: `has no object at ${place}`, remedy: "Give an object there." });
        return;
      }
      for (const [name, entry] of Object.entries(value)) {
        const shape = Object.hasOwn(fields, name) ? fields[name] : undefined;
        if (shape === undefined) found.push(unknownName(name, place, Object.keys(fields)));
        else if (entry !== undefined) shape.judge(entry, below(place, name), found);
      }
      for (const name of required) {
        if (value[name] === undefined) found.push({ place, problem: `lacks ${place}.${name}`, remedy: "Add it." });
      }
    },
  };
}

export function oneOf(...words: readonly string[]): Shape {
  return accept((value) => typeof value === "string" && words.includes(value), words.join(", "));
}

function unknownName(name: string, place: string, known: readonly string[]): ShapeProblem {
  const shown = showWord(name);
  const meant = didYouMean(name, known);
  const remedy = meant === undefined ? `Known there: ${known.join(", ")}.` : `Did you mean ${meant}?`;
  return { place: below(place, name), problem: `has the unknown field "${below(place, shown)}"`, remedy };
}
