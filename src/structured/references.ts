/** Local references of a JSON Schema: `#`, `#/$defs/a%20b`, `#anchor`. */

export type Schema = Record<string, unknown>;

export function isFields(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

const unescaped = (part: string): string => part.replaceAll("~1", "/").replaceAll("~0", "~");

function step(value: unknown, part: string): unknown {
  if (Array.isArray(value)) return value[Number(part)];
  return isFields(value) && Object.hasOwn(value, part) ? value[part] : undefined;
}

function walk(root: Schema, parts: readonly string[]): unknown {
  return parts.reduce<unknown>((value, part) => step(value, unescaped(part)), root);
}

function anchors(root: Schema): Map<string, string> {
  const found = new Map<string, string>();
  const open: [unknown, string][] = [[root, "#"]];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [value, pointer] = next;
    if (typeof value !== "object" || value === null) continue;
    const anchor = (value as Schema).$anchor;
    if (typeof anchor === "string") found.set(anchor, pointer);
    for (const [key, inner] of Object.entries(value)) {
      open.push([inner, `${pointer}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`]);
    }
  }
  return found;
}

/** Pointers are told in one spelling, so that equal places are recognised. */
export function createReferences(root: Schema) {
  let named: Map<string, string> | undefined;
  const partsOf = (pointer: string): string[] => pointer.split("/").slice(1);

  function target(pointer: string): unknown {
    return walk(root, partsOf(pointer));
  }

  function pointerOf(reference: string): string | undefined {
    const own = typeof root.$id === "string" ? root.$id.replace(/#$/, "") : undefined;
    const local = own !== undefined && reference.startsWith(own) ? reference.slice(own.length) || "#" : reference;
    if (local === "#") return "#";
    if (!local.startsWith("#")) return undefined;
    if (!local.startsWith("#/")) {
      named ??= anchors(root);
      return named.get(decoded(local.slice(1)));
    }
    const plain = ["#", ...partsOf(local)].join("/");
    const percent = ["#", ...partsOf(local).map(decoded)].join("/");
    return [percent, plain].find((pointer) => target(pointer) !== undefined);
  }

  return {
    target,
    /** Throws Error when it leads nowhere. */
    resolve(reference: string): { target: unknown; pointer: string } {
      const pointer = pointerOf(reference);
      if (pointer !== undefined) return { target: target(pointer), pointer };
      throw new Error(
        `$ref ${JSON.stringify(reference)} leads nowhere; only references within the schema are followed`,
      );
    },
  };
}
