import { crc32, deflateRawSync } from "node:zlib";

/** One member of an archive. Everything but name and bytes is there to tell lies with. */
export interface ZipEntryPlan {
  readonly name: string | Buffer;
  readonly bytes: string | Buffer;
  /** Default `deflate`. A number = that method is told, the bytes are stored. */
  readonly method?: "stored" | "deflate" | number;
  /** Sizes and checksum stand behind the data, as streaming writers put them. */
  readonly descriptor?: boolean;
  /** What stands there instead of the deflated bytes. */
  readonly packed?: Buffer;
  readonly flags?: number;
  readonly crc?: number;
  readonly compressedSize?: number;
  readonly size?: number;
  readonly externalAttributes?: number;
  readonly localName?: string;
  readonly localMethod?: number;
  readonly disk?: number;
  /** Where its local header is said to be; `previous` = where the one before it is. */
  readonly offset?: number | "previous";
  readonly localExtra?: Buffer;
  readonly extra?: Buffer;
}

/** Lies about the archive itself. */
export interface ZipLies {
  readonly entryCount?: number;
  readonly directorySize?: number;
  readonly directoryOffset?: number;
  readonly disk?: number;
  readonly comment?: string;
}

const LOCAL_HEADER = 0x04034b50;
const DIRECTORY_HEADER = 0x02014b50;
const END_OF_DIRECTORY = 0x06054b50;
const DATA_DESCRIPTOR = 0x08074b50;
const UTF8_NAME = 0x800;
const SIZES_BEHIND = 0x8;
const UNIX = 3 << 8;
const VERSION = 20;

function fields(...parts: readonly (readonly [size: 2 | 4, value: number])[]): Buffer {
  const buffer = Buffer.alloc(parts.reduce((total, [size]) => total + size, 0));
  let at = 0;
  for (const [size, value] of parts) {
    buffer.writeUIntLE(value, at, size);
    at += size;
  }
  return buffer;
}

function methodOf({ method = "deflate" }: ZipEntryPlan): number {
  if (typeof method === "number") return method;
  return method === "deflate" ? 8 : 0;
}

interface Written {
  readonly plan: ZipEntryPlan;
  readonly name: Buffer;
  readonly flags: number;
  readonly crc: number;
  readonly packedBytes: number;
  readonly bytes: number;
  readonly offset: number;
}

function localPart(plan: ZipEntryPlan, offset: number): { readonly written: Written; readonly part: Buffer } {
  const name = Buffer.from(plan.name);
  const bytes = Buffer.from(plan.bytes);
  const packed = plan.packed ?? (methodOf(plan) === 8 ? deflateRawSync(bytes) : bytes);
  const behind = plan.descriptor === true;
  const flags = plan.flags ?? UTF8_NAME | (behind ? SIZES_BEHIND : 0);
  const crc = plan.crc ?? crc32(bytes);
  const packedBytes = plan.compressedSize ?? packed.length;
  const size = plan.size ?? bytes.length;
  const localName = plan.localName === undefined ? name : Buffer.from(plan.localName);
  const localExtra = plan.localExtra ?? Buffer.alloc(0);
  const header = fields(
    [4, LOCAL_HEADER],
    [2, VERSION],
    [2, flags],
    [2, plan.localMethod ?? methodOf(plan)],
    [4, 0],
    [4, behind ? 0 : crc],
    [4, behind ? 0 : packedBytes],
    [4, behind ? 0 : size],
    [2, localName.length],
    [2, localExtra.length],
  );
  const descriptor = behind ? fields([4, DATA_DESCRIPTOR], [4, crc], [4, packedBytes], [4, size]) : Buffer.alloc(0);
  return {
    written: { plan, name, flags, crc, packedBytes, bytes: size, offset },
    part: Buffer.concat([header, localName, localExtra, packed, descriptor]),
  };
}

function directoryPart({ plan, name, flags, crc, packedBytes, bytes, offset }: Written): Buffer {
  const extra = plan.extra ?? Buffer.alloc(0);
  const header = fields(
    [4, DIRECTORY_HEADER],
    [2, UNIX | VERSION],
    [2, VERSION],
    [2, flags],
    [2, methodOf(plan)],
    [4, 0],
    [4, crc],
    [4, packedBytes],
    [4, bytes],
    [2, name.length],
    [2, extra.length],
    [2, 0],
    [2, plan.disk ?? 0],
    [2, 0],
    [4, plan.externalAttributes ?? 0],
    [4, offset],
  );
  return Buffer.concat([header, name, extra]);
}

/** A ZIP archive, good or not. */
export function writeZip(plans: readonly ZipEntryPlan[], lies: ZipLies = {}): Buffer {
  const parts: Buffer[] = [];
  const written: Written[] = [];
  let end = 0;
  for (const plan of plans) {
    const entry = localPart(plan, end);
    parts.push(entry.part);
    end += entry.part.length;
    const told = plan.offset === "previous" ? written.at(-1)?.offset : plan.offset;
    written.push(told === undefined ? entry.written : { ...entry.written, offset: told });
  }
  const directory = Buffer.concat(written.map(directoryPart));
  const comment = Buffer.from(lies.comment ?? "");
  const count = lies.entryCount ?? plans.length;
  const tail = fields(
    [4, END_OF_DIRECTORY],
    [2, lies.disk ?? 0],
    [2, lies.disk ?? 0],
    [2, count],
    [2, count],
    [4, lies.directorySize ?? directory.length],
    [4, lies.directoryOffset ?? end],
    [2, comment.length],
  );
  return Buffer.concat([...parts, directory, tail, comment]);
}
