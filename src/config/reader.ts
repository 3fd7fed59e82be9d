import { didYouMean } from "../domain/did-you-mean.js";
import type { ConfigProblem } from "../errors.js";
import type { Field, Fields } from "./field.js";
import type { Labels } from "./labels.js";
import { checkValue, isPlainObject, quoted, unknownField } from "./values.js";

/** Reads given options by their tables and collects every problem on the way. */
export interface OptionReader {
  readonly problems: ConfigProblem[];
  /** Nothing is wrong with this path so far. */
  usable(path: string): boolean;
  /** The given value when it fits, else the field's default after the problem was noted. */
  field<T>(path: string, field: Field<T>, given: unknown): T;
  /** All fields of one object; `partial` = its required fields may be missing. */
  object<T extends object>(path: string, fields: Fields<T>, given: unknown, partial?: boolean): T;
  refuseUnknown(given: Record<string, unknown>, known: readonly string[], prefix: string): void;
  /** `place`: where in the option's value, for notations that know its line. */
  report(path: string, problem: string, remedy: string, place?: string): void;
}

/** `broken`: paths reported elsewhere, neither required nor judged again. */
export function optionReader(labels: Labels, broken: ReadonlySet<string> = new Set()): OptionReader {
  const problems: ConfigProblem[] = [];
  const unusable = new Set(broken);

  function report(path: string, problem: string, remedy: string, place = ""): void {
    unusable.add(path);
    const inside = labels.within?.(path, place);
    if (inside !== undefined) {
      problems.push({ key: inside, problem, remedy });
      return;
    }
    const value = labels.given(path);
    problems.push({ key: labels.key(path), ...(value === undefined ? {} : { value }), problem, remedy });
  }

  function field<T>(path: string, wanted: Field<T>, given: unknown): T {
    if (unusable.has(path)) return wanted.fallback;
    if (given === undefined) {
      if (wanted.required) report(path, "is missing", `Set it: ${labels.accepted(wanted)}.`);
      return wanted.fallback;
    }
    const checked = checkValue(wanted, given);
    if ("value" in checked) return checked.value as T;
    report(path, checked.problem, `Accepted: ${labels.accepted(wanted)}.`);
    return wanted.fallback;
  }

  function object<T extends object>(path: string, fields: Fields<T>, given: unknown, partial = false): T {
    if (given !== undefined && !isPlainObject(given)) {
      report(path, "is not an object", `Give an object with ${Object.keys(fields).join(", ")}.`);
    }
    const options = isPlainObject(given) ? given : {};
    const relaxed = partial || (given !== undefined && !isPlainObject(given));
    refuseUnknown(options, Object.keys(fields), `${path}.`);
    const read = Object.entries<Field>(fields).map(([option, wanted]) => {
      const rule = relaxed ? { ...wanted, required: false } : wanted;
      return [option, field(`${path}.${option}`, rule, options[option])];
    });
    return Object.fromEntries(read) as T;
  }

  function refuseUnknown(given: Record<string, unknown>, known: readonly string[], prefix: string): void {
    for (const key of Object.keys(given).filter((name) => !known.includes(name))) {
      const meant = didYouMean(key, known);
      const path = `${prefix}${key}`;
      const field = unknownField(`${key} ${meant ?? ""}`);
      const shown = field.secret ? undefined : labels.unknown?.(path);
      problems.push({
        key: labels.key(path),
        value: shown ?? quoted(field, given[key]),
        problem: "is not a known option",
        remedy: meant ? `Did you mean ${prefix}${meant}?` : `Known are ${known.join(", ")}.`,
      });
    }
  }

  return { problems, usable: (path) => !unusable.has(path), field, object, refuseUnknown, report };
}
