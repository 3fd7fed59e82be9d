import { countOf } from "../../domain/count-of.js";

/** One member, as the archive's directory tells it, with where its data begins. */
export interface ZipEntry {
  readonly name: string;
  readonly method: number;
  readonly crc: number;
  /** Bytes in the archive, and inflated; both are claims. */
  readonly packedBytes: number;
  readonly bytes: number;
  readonly dataStart: number;
}

/** Names for errors: the first few, harmless to print. */
export interface SeenEntries {
  /** As the archive tells it. */
  count: number;
  readonly names: string[];
}

const LOCAL_HEADER = 0x04034b50;
const DIRECTORY_HEADER = 0x02014b50;
const END_OF_DIRECTORY = 0x06054b50;
const LOCAL_BYTES = 30;
const HEADER_BYTES = 46;
const END_BYTES = 22;
const MAX_COMMENT_BYTES = 0xffff;
/** Told instead of a number that stands in zip64 fields, which no archive below 4 GiB needs. */
const IN_ZIP64 = 0xffffffff;
const ENCRYPTED = 0x1 | 0x40 | 0x2000;
const UTF8_NAME = 0x800;
const STORED = 0;
const FILE_TYPE = 0o170000;
const SYMLINK = 0o120000;
const MAX_NAMES_SEEN = 20;
const MAX_NAME_UNITS = 80;

/** Not to be printed: controls, halves of characters, marks that turn the direction of writing. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: that's what is replaced
const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff]/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: that's what is looked for
const CONTROL = /[\u0000-\u001f\u007f]/;

/** A name as it may stand in an error. */
export function printable(name: string): string {
  return name.slice(0, MAX_NAME_UNITS).replace(UNPRINTABLE, "?");
}

/**
 * What the directory at the end of an archive lists. The result is a text where the archive isn't one, lies about itself
 * or could only have been made to do harm: it is told by every name, overlap and offset before a single byte is inflated.
 */
export function readDirectory(archive: Buffer, maxEntries: number, seen: SeenEntries): ZipEntry[] | string {
  const endAt = findEnd(archive);
  if (typeof endAt === "string") return endAt;
  const count = archive.readUInt16LE(endAt + 10);
  const size = archive.readUInt32LE(endAt + 12);
  const start = archive.readUInt32LE(endAt + 16);
  seen.count = count;
  const onDisks = archive.readUInt32LE(endAt + 4) !== 0 || archive.readUInt16LE(endAt + 8) !== count;
  if (onDisks) return "it is one part of a split archive";
  const headers = readHeaders(archive, { start, end: endAt, size, count, maxEntries }, seen);
  if (typeof headers === "string") return headers;
  const problem = placeProblem(headers, start);
  return problem ?? headers.map(({ entry }) => entry);
}

/** The last record whose comment reaches exactly to the end: whatever else follows it is no part of the archive. */
function findEnd(archive: Buffer): number | string {
  let isSeen = false;
  const last = archive.length - END_BYTES;
  for (let at = last; at >= Math.max(0, last - MAX_COMMENT_BYTES); at -= 1) {
    if (archive[at] !== 0x50 || archive.readUInt32LE(at) !== END_OF_DIRECTORY) continue;
    if (at + END_BYTES + archive.readUInt16LE(at + 20) === archive.length) return at;
    isSeen = true;
  }
  if (isSeen) return "bytes follow its end, or are missing there";
  if (archive.length < 4 || archive.readUInt16LE(0) !== 0x4b50) return "it is no ZIP archive";
  return "it was cut: the directory at its end is missing";
}

interface Directory {
  readonly start: number;
  readonly end: number;
  readonly size: number;
  readonly count: number;
  readonly maxEntries: number;
}

/** An entry with the bytes that are its own. */
interface Placed {
  readonly entry: ZipEntry;
  readonly from: number;
  readonly to: number;
}

function readHeaders(archive: Buffer, directory: Directory, seen: SeenEntries): Placed[] | string {
  const { start, end, size, count, maxEntries } = directory;
  if (start === IN_ZIP64 || size === IN_ZIP64) return "it is a zip64 archive, which one of this size need not be";
  if (start + size !== end) return "its directory isn't where it is said to be";
  const placed: Placed[] = [];
  const names = new Set<string>();
  let problem: string | undefined;
  let at = start;
  for (let n = 0; n < count && n < maxEntries; n += 1) {
    const header = readHeader(archive, at, directory);
    if (typeof header === "string") return header;
    const { name } = header.placed.entry;
    if (n < MAX_NAMES_SEEN) seen.names.push(printable(name));
    problem ??= header.problem ?? (names.has(name) ? `two members are called ${printable(name)}` : undefined);
    names.add(name);
    placed.push(header.placed);
    at = header.next;
  }
  if (count > maxEntries) return `it tells of ${countOf(count, "entry", "entries")}, more than ${maxEntries}`;
  if (at !== end) return `its directory holds more than the ${countOf(count, "entry", "entries")} that it tells of`;
  return problem ?? placed;
}

interface Header {
  readonly placed: Placed;
  /** Why the archive is refused although its directory can be read on. */
  readonly problem: string | undefined;
  readonly next: number;
}

function readHeader(archive: Buffer, at: number, { start, end }: Directory): Header | string {
  if (at + HEADER_BYTES > end || archive.readUInt32LE(at) !== DIRECTORY_HEADER) {
    return "its directory holds fewer entries than it tells of, or is broken";
  }
  const nameBytes = archive.readUInt16LE(at + 28);
  const nameAt = at + HEADER_BYTES;
  const next = nameAt + nameBytes + archive.readUInt16LE(at + 30) + archive.readUInt16LE(at + 32);
  if (next > end) return "its directory is cut";
  const flags = archive.readUInt16LE(at + 8);
  const rawName = archive.subarray(nameAt, nameAt + nameBytes);
  const name = rawName.toString((flags & UTF8_NAME) === 0 ? "latin1" : "utf8");
  const claims = {
    name,
    method: archive.readUInt16LE(at + 10),
    crc: archive.readUInt32LE(at + 16),
    packedBytes: archive.readUInt32LE(at + 20),
    bytes: archive.readUInt32LE(at + 24),
  };
  const from = archive.readUInt32LE(at + 42);
  const mode = archive.readUInt32LE(at + 38) >>> 16;
  const problem = entryProblem(claims, { flags, mode, disk: archive.readUInt16LE(at + 34), from });
  const dataStart =
    problem === undefined ? readLocal(archive, { from, limit: start, rawName, method: claims.method }) : 0;
  if (typeof dataStart === "string")
    return { placed: nowhere(claims), problem: `${printable(name)} ${dataStart}`, next };
  const entry = { ...claims, dataStart };
  return { placed: { entry, from, to: dataStart + claims.packedBytes }, problem, next };
}

type Claims = Omit<ZipEntry, "dataStart">;

function nowhere(claims: Claims): Placed {
  return { entry: { ...claims, dataStart: 0 }, from: 0, to: 0 };
}

function entryProblem(
  { name, method, packedBytes, bytes }: Claims,
  { flags, mode, disk, from }: { flags: number; mode: number; disk: number; from: number },
): string | undefined {
  const who = printable(name);
  if (name === "" || CONTROL.test(name)) return `the name of an entry is empty or holds control characters`;
  if (/^(?:[/\\]|[a-z]:)/i.test(name)) return `${who} is an absolute path`;
  if (name.split(/[/\\]/).includes("..")) return `${who} leaves the folder of the archive`;
  if ((flags & ENCRYPTED) !== 0) return `${who} is encrypted`;
  if ((mode & FILE_TYPE) === SYMLINK) return `${who} is a symbolic link`;
  if (disk !== 0) return `${who} lies in another part of a split archive`;
  if ([packedBytes, bytes, from].includes(IN_ZIP64)) return `${who} has zip64 sizes, which it need not have`;
  return method === STORED && packedBytes !== bytes ? `${who} is stored in another size than it has` : undefined;
}

interface LocalPlace {
  readonly from: number;
  readonly limit: number;
  readonly rawName: Buffer;
  readonly method: number;
}

/** Where the data begins; a text says in which way the header before it contradicts the directory. */
function readLocal(archive: Buffer, { from, limit, rawName, method }: LocalPlace): number | string {
  if (from + LOCAL_BYTES > limit || archive.readUInt32LE(from) !== LOCAL_HEADER) return "isn't where it is said to be";
  const nameEnd = from + LOCAL_BYTES + archive.readUInt16LE(from + 26);
  const isSame = rawName.equals(archive.subarray(from + LOCAL_BYTES, nameEnd));
  if (!isSame || archive.readUInt16LE(from + 8) !== method)
    return "has another name or method than the directory tells";
  return nameEnd + archive.readUInt16LE(from + 28);
}

/** Members that share bytes make bombs of any size; a member in the directory is a lie. */
function placeProblem(placed: readonly Placed[], limit: number): string | undefined {
  let free = 0;
  for (const { entry, from, to } of [...placed].sort((a, b) => a.from - b.from)) {
    if (from < free) return `${printable(entry.name)} overlaps another member`;
    if (to > limit) return `${printable(entry.name)} is larger than the archive`;
    free = to;
  }
  return undefined;
}
