import { countOf } from "../../domain/count-of.js";
import { printable, readDirectory, type SeenEntries } from "./zip-directory.js";
import { readMember } from "./zip-member.js";

/** Reads members of an archive that a server sent (spec 06 "ZIP defence"): in memory, never onto a disk. */

export interface ZipLimits {
  readonly maxEntries: number;
  /** Of one member that is read, inflated. */
  readonly maxEntryBytes: number;
  /** Of all members that are read, inflated. */
  readonly maxTotalBytes: number;
  /** Inflated bytes for one in the archive. */
  readonly maxRatio: number;
}

const MIB = 1_024 * 1_024;

export const ZIP_LIMITS: ZipLimits = {
  maxEntries: 1_000,
  maxEntryBytes: 64 * MIB,
  maxTotalBytes: 200 * MIB,
  maxRatio: 200,
};

export interface ZipMember {
  readonly name: string;
  readonly bytes: Buffer;
}

export interface ZipContent {
  /** The wanted ones, in the order of the directory; empty with a problem. */
  readonly members: readonly ZipMember[];
  /** Why nothing of the archive is used, said of "the archive"; null = all is well. */
  readonly problem: string | null;
  /** What the archive holds, as far as it was read. */
  readonly entries: Readonly<SeenEntries>;
}

export interface ReadZipOptions {
  readonly limits?: ZipLimits;
  /** Asked between two pieces: true = nobody waits for the result any more. */
  readonly isStopped?: () => boolean;
}

/**
 * The members whose names end with `suffix`; nothing else is inflated. An archive that lies about itself, holds names that
 * lead out of it, overlapping or encrypted members, or more than the limits allow is refused as a whole. Never rejects.
 */
export async function readZip(archive: Buffer, suffix: string, options: ReadZipOptions = {}): Promise<ZipContent> {
  const { limits = ZIP_LIMITS, isStopped = () => false } = options;
  const entries: SeenEntries = { count: 0, names: [] };
  const refuse = (problem: string): ZipContent => ({ members: [], problem, entries });
  const directory = readDirectory(archive, limits.maxEntries, entries);
  if (typeof directory === "string") return refuse(directory);
  const wanted = directory.filter(({ name }) => name.endsWith(suffix));
  if (wanted.length === 0) return refuse(`it holds no member that ends with ${suffix}`);
  const members: ZipMember[] = [];
  let budgetBytes = limits.maxTotalBytes;
  for (const entry of wanted) {
    const caps = { maxBytes: limits.maxEntryBytes, budgetBytes, maxRatio: limits.maxRatio };
    const bytes = await readMember(archive, entry, caps, isStopped);
    if (typeof bytes === "string") return refuse(`${printable(entry.name)} ${bytes}`);
    budgetBytes -= bytes.length;
    members.push({ name: entry.name, bytes });
  }
  return { members, problem: null, entries };
}

/** What an error adds: what the archive holds. */
export function listEntries({ count, names }: SeenEntries): string {
  if (count === 0) return "no entry was seen";
  const rest = count > names.length ? ", …" : "";
  return `${countOf(count, "entry", "entries")} seen: ${names.join(", ")}${rest}`;
}
