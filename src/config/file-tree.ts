/** What a configuration file holds, each part with its line; nothing is interpreted yet. */
export type Tree = MapTree | ListTree | ScalarTree;

export interface MapTree {
  readonly kind: "map";
  /** 1-based line in the file, of the key when there is one. */
  readonly line: number;
  readonly entries: ReadonlyMap<string, Tree>;
}

export interface ListTree {
  readonly kind: "list";
  readonly line: number;
  readonly items: readonly Tree[];
}

export interface ScalarTree {
  readonly kind: "scalar";
  readonly line: number;
  readonly value: string | number | boolean | null;
  /** Written in quotes or as a block: always a text. */
  readonly quoted: boolean;
}

/** The option path of a key below another: `retry.maxAttempts`, or the key alone at the top. */
export function below(path: string, key: string): string {
  return path === "" ? key : `${path}.${key}`;
}
