import type { Env } from "./env-reading.js";

export interface Interpolated {
  readonly text: string;
  /** Variables that were asked for. */
  readonly names: readonly string[];
  /** The whole text was one `${…}`. */
  readonly whole: boolean;
  /** What is wrong, each with what to do. */
  readonly problems: readonly (readonly [problem: string, remedy: string])[];
}

const FORMS = `Write \${NAME}, \${NAME:-default}, or $\${ for a literal \${.`;
const INSIDE = /^([A-Za-z_]\w*)(?::-(.*))?$/s;

/** Has something that `interpolate` would change. */
export function isInterpolated(text: string): boolean {
  return text.includes("$$") || text.includes("${");
}

/**
 * Fills `${NAME}` and `${NAME:-default}` (unset or empty: the default); `$$` is one `$`. Values are inserted as they
 * are: nothing in them is interpolated again or read as YAML.
 */
export function interpolate(text: string, env: Env): Interpolated {
  const names: string[] = [];
  const problems: (readonly [string, string])[] = [];
  let whole = false;
  const filled = text.replace(
    /\$\$|\$\{([^}]*)(\}?)/g,
    (found, inside: string | undefined, end: string | undefined) => {
      if (found === "$$") return "$";
      whole = found === text;
      const [, name = "", fallback] = INSIDE.exec(inside ?? "") ?? [];
      if (name === "" || end !== "}" || fallback?.includes("${")) {
        problems.push([`has a \${…} that can't be read`, FORMS]);
        return found;
      }
      names.push(name);
      const value = Object.hasOwn(env, name) ? env[name] : undefined;
      if (fallback !== undefined) return value === undefined || value === "" ? fallback : value;
      if (value === undefined) {
        problems.push([`needs the variable ${name}, which is not set`, `Set ${name}, or write \${${name}:-default}.`]);
      }
      return value ?? "";
    },
  );
  return { text: filled, names, whole, problems };
}
