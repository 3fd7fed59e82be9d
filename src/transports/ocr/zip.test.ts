import { randomBytes } from "node:crypto";
import { deflateRawSync } from "node:zlib";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { writeZip, type ZipEntryPlan, type ZipLies } from "../../testing/ocr/zip-writer.js";
import { listEntries, readZip, ZIP_LIMITS, type ZipContent } from "./zip.js";

const MIB = 1_024 * 1_024;
const WANTED = { name: "scan_middle.json", bytes: '{"pdf_info":[]}' };
const IMAGE = { name: "images/a.jpg", bytes: randomBytes(500), method: "stored" } as const;

function read(archive: Buffer): Promise<ZipContent> {
  return readZip(archive, "_middle.json");
}

describe("an archive gives its wanted members", () => {
  test.each<[string, ZipEntryPlan]>([
    ["deflated", WANTED],
    ["stored", { ...WANTED, method: "stored" }],
    ["empty", { ...WANTED, bytes: "" }],
    ["with a data descriptor", { ...WANTED, descriptor: true }],
    ["in a folder", { ...WANTED, name: "page_0/scan_middle.json" }],
    ["with a name that isn't ASCII", { ...WANTED, name: "отчёт_middle.json" }],
    ["with extra fields", { ...WANTED, extra: Buffer.alloc(9), localExtra: Buffer.alloc(28) }],
    ["of more than one piece", { ...WANTED, bytes: randomBytes(700_000).toString("hex") }],
    ["stored, of more than one piece", { ...WANTED, bytes: randomBytes(2_500_000), method: "stored" }],
    ["very dense, but small", { ...WANTED, bytes: Buffer.alloc(MIB) }],
  ])("%s", async (_name, plan) => {
    const content = await read(writeZip([{ name: "scan.md", bytes: "# A" }, plan, IMAGE]));
    expect(content.problem).toBeNull();
    expect(content.members.map(({ name }) => name)).toEqual([plan.name]);
    expect(content.members[0]?.bytes.equals(Buffer.from(plan.bytes))).toBe(true);
    expect(content.entries.count).toBe(3);
  });

  test("all of them, in the directory's order", async () => {
    const pages = ["b", "a", "c"].map((name) => ({ ...WANTED, name: `${name}_middle.json` }));
    const { members } = await read(writeZip([...pages, IMAGE]));
    expect(members.map(({ name }) => name)).toEqual(["b_middle.json", "a_middle.json", "c_middle.json"]);
  });

  test("without looking into anything else: other members may be broken, huge or archives themselves", async () => {
    const inner = writeZip([{ name: "inner_middle.json", bytes: "{}" }]);
    const { members } = await read(
      writeZip([
        { name: "model.pdf", bytes: "", packed: Buffer.from("no deflate"), size: 4e9 },
        { name: "unknown.bin", bytes: "x", method: 99 },
        { name: "inner.zip", bytes: inner },
        WANTED,
      ]),
    );
    expect(members.map(({ name }) => name)).toEqual(["scan_middle.json"]);
  });

  test("with a comment, even one that looks like an end", async () => {
    const comment = "PK\u0005\u0006 and more";
    expect((await read(writeZip([WANTED], { comment }))).problem).toBeNull();
  });
});

describe("an archive is refused", () => {
  const named = (name: string | Buffer): ZipEntryPlan[] => [WANTED, { name, bytes: "x" }];
  test.each<[string, readonly ZipEntryPlan[], RegExp]>([
    ["whose name climbs out", named("../../etc/passwd"), /\.\.\/\.\.\/etc\/passwd leaves the folder/],
    ["whose name climbs out midway", named("a/../../b"), /leaves the folder/],
    ["whose name climbs out by backslashes", named("..\\..\\b"), /leaves the folder/],
    ["with an absolute name", named("/etc/passwd"), /absolute path/],
    ["with an absolute name for Windows", named("C:\\windows\\x"), /absolute path/],
    ["with a share for a name", named("\\\\host\\x"), /absolute path/],
    ["with NUL in a name", named("scan_middle.json\0.txt"), /control characters/],
    ["with a line break in a name", named("a\nb"), /control characters/],
    ["without a name", named(""), /is empty/],
    [
      "with a symbolic link",
      [WANTED, { name: "l", bytes: "/etc", externalAttributes: 0o120777 * 65_536 }],
      /symbolic link/,
    ],
    ["with a member twice", [WANTED, WANTED], /two members are called scan_middle\.json/],
    ["that is encrypted", [{ ...WANTED, flags: 1 }], /scan_middle\.json is encrypted/],
    ["that is strongly encrypted", [{ ...WANTED, flags: 0x41 }], /is encrypted/],
    ["with a wrong checksum", [{ ...WANTED, crc: 1 }], /checksum doesn't match/],
    ["with a wrong checksum, stored", [{ ...WANTED, crc: 1, method: "stored" }], /checksum doesn't match/],
    ["that inflates to more than it tells", [{ ...WANTED, size: 3 }], /more than the 3 bytes that it tells/],
    ["that inflates to less than it tells", [{ ...WANTED, size: 500 }], /another size than it tells/],
    ["that is stored in another size", [{ ...WANTED, method: "stored", size: 500 }], /stored in another size/],
    ["that tells zip64 sizes", [{ ...WANTED, size: 0xffffffff }], /zip64/],
    ["whose packed size is zip64", [{ ...WANTED, compressedSize: 0xffffffff }], /zip64/],
    ["that begins in zip64", [{ ...WANTED, offset: 0xffffffff }], /zip64/],
    ["whose member is larger than itself", [{ ...WANTED, compressedSize: 5_000 }], /larger than the archive/],
    ["whose deflated bytes are none", [{ ...WANTED, packed: Buffer.from("garbage!") }], /is damaged/],
    ["whose deflated bytes are cut", [{ ...WANTED, packed: deflateRawSync(WANTED.bytes).subarray(0, -4) }], /is cut/],
    [
      "with bytes behind the deflated ones",
      [{ ...WANTED, packed: Buffer.concat([deflateRawSync(WANTED.bytes), Buffer.from("more")]) }],
      /another size than it tells/,
    ],
    ["of an unknown method", [{ ...WANTED, method: 12 }], /packed by method 12/],
    ["whose member isn't there", [{ ...WANTED, offset: 7 }], /isn't where it is said to be/],
    ["whose member is beyond", [{ ...WANTED, offset: 1e9 }], /isn't where it is said to be/],
    ["whose member has two names", [{ ...WANTED, localName: "scan_middle.jsox" }], /another name or method/],
    ["whose member has two methods", [{ ...WANTED, localMethod: 0 }], /another name or method/],
    ["whose member is on another disk", [{ ...WANTED, disk: 1 }], /another part of a split archive/],
    ["whose members are one", [IMAGE, { ...IMAGE, name: "scan_middle.json", offset: "previous" }], /another name or/],
    ["without what is wanted", [IMAGE], /no member that ends with _middle\.json/],
    ["that is empty", [], /no member that ends with _middle\.json/],
  ])("%s", async (_name, plans, problem) => {
    const content = await read(writeZip(plans));
    expect(content.problem).toMatch(problem);
    expect(content.members).toEqual([]);
  });

  test.each<[string, ZipLies, RegExp]>([
    ["that tells of more entries than it has", { entryCount: 3 }, /fewer entries than it tells of/],
    ["that tells of fewer entries than it has", { entryCount: 1 }, /more than the 1 entry/],
    ["that tells of 65,535 entries", { entryCount: 65_535 }, /fewer entries than it tells of/],
    ["whose directory is elsewhere", { directoryOffset: 3 }, /isn't where it is said to be/],
    ["whose directory is smaller", { directorySize: 3 }, /isn't where it is said to be/],
    ["whose directory is in zip64", { directoryOffset: 0xffffffff }, /zip64 archive/],
    ["whose directory's size is in zip64", { directorySize: 0xffffffff }, /zip64 archive/],
    ["that is one of several disks", { disk: 1 }, /split archive/],
  ])("%s", async (_name, lies, problem) => {
    expect((await read(writeZip([WANTED, IMAGE], lies))).problem).toMatch(problem);
  });

  test.each<[string, (whole: Buffer) => Buffer, RegExp]>([
    ["without its last byte", (whole) => whole.subarray(0, -1), /it was cut|missing/],
    ["without its second half", (whole) => whole.subarray(0, whole.length / 2), /it was cut/],
    ["with something behind it", (whole) => Buffer.concat([whole, Buffer.from("x")]), /bytes follow its end/],
    ["with something before it", (whole) => Buffer.concat([Buffer.from("MZ"), whole]), /isn't where it is said/],
    ["of no bytes", () => Buffer.alloc(0), /no ZIP archive/],
    ["that is a page", () => Buffer.from("<html>404</html>"), /no ZIP archive/],
  ])("%s", async (_name, change, problem) => {
    expect((await read(change(writeZip([WANTED, IMAGE])))).problem).toMatch(problem);
  });

  test("whose members share bytes: quoted one by another, each with a header of its own", async () => {
    // The header of the second member lies, stored, within the first, which is how bombs of petabytes are made.
    const inner = writeZip([{ ...WANTED, method: "stored" }]).subarray(
      0,
      30 + WANTED.name.length + WANTED.bytes.length,
    );
    const outer = { name: "outer", bytes: inner, method: "stored" } as const;
    const at = 30 + outer.name.length;
    const archive = writeZip([outer, { ...WANTED, method: "stored", offset: at }]);
    expect((await read(archive)).problem).toBe("scan_middle.json overlaps another member");
  });

  test("naming what was seen, printable and no more than twenty", async () => {
    const many = Array.from({ length: 30 }, (_, n) => ({ name: `f${n}`, bytes: "" }));
    const { entries } = await read(writeZip([{ name: `\u202egpj.${"x".repeat(200)}`, bytes: "" }, ...many]));
    expect(entries.count).toBe(31);
    expect(entries.names).toHaveLength(20);
    expect(entries.names[0]).toBe(`?gpj.${"x".repeat(75)}`);
    expect(listEntries(entries)).toMatch(/^31 entries seen: .*, f18, …$/);
    expect(listEntries({ count: 1, names: ["a"] })).toBe("1 entry seen: a");
    expect(listEntries({ count: 0, names: [] })).toBe("no entry was seen");
  });
});

describe("what an archive may become is bounded", () => {
  const blanks = (size: number) => deflateRawSync(Buffer.alloc(size), { level: 9 });
  const limits = { ...ZIP_LIMITS, maxRatio: Number.POSITIVE_INFINITY };
  const page = (n: number, size: number) => ({ name: `page_${n}/x_middle.json`, bytes: Buffer.alloc(size) });

  test("by the number of entries", async () => {
    const fill = (count: number) => Array.from({ length: count }, (_, n) => ({ name: `f${n}`, bytes: "" }));
    expect((await read(writeZip([WANTED, ...fill(999)]))).problem).toBeNull();
    expect((await read(writeZip([WANTED, ...fill(1_000)]))).problem).toBe("it tells of 1001 entries, more than 1000");
  });

  test("by the size of a member, whatever it tells", async () => {
    const bomb = { name: "x_middle.json", bytes: "", packed: blanks(100 * MIB) };
    expect((await read(writeZip([{ ...bomb, size: 100 * MIB }]))).problem).toMatch(/more than 67108864 bytes/);
    // A bomb that tells a modest size ends there, long before it is whole.
    expect((await read(writeZip([{ ...bomb, size: 1_000 }]))).problem).toMatch(/more than the 1000 bytes/);
    expect(
      (await readZip(writeZip([page(0, MIB)]), "_middle.json", { limits: { ...limits, maxEntryBytes: MIB } })).problem,
    ).toBeNull();
    const below = { ...limits, maxEntryBytes: MIB - 1 };
    expect((await readZip(writeZip([page(0, MIB)]), "_middle.json", { limits: below })).problem).toMatch(
      /1048575 bytes/,
    );
  });

  test("by the ratio", async () => {
    expect((await read(writeZip([page(0, 2 * MIB)]))).problem).toMatch(/more than 200 times its size/);
    const half = Buffer.concat([randomBytes(12_000), Buffer.alloc(2 * MIB)]);
    expect((await read(writeZip([{ name: "x_middle.json", bytes: half }]))).problem).toBeNull();
  });

  test("by the size of all wanted members together", async () => {
    const pages = [0, 1, 2].map((n) => page(n, MIB));
    const together = { ...limits, maxTotalBytes: 3 * MIB };
    expect((await readZip(writeZip(pages), "_middle.json", { limits: together })).problem).toBeNull();
    const less = { ...limits, maxTotalBytes: 3 * MIB - 1 };
    expect((await readZip(writeZip(pages), "_middle.json", { limits: less })).problem).toMatch(
      /page_2\/x_middle\.json inflates, together with/,
    );
  });
});

test("inflating ends when nobody waits any more, and lets others run meanwhile", async () => {
  const archive = writeZip([{ name: "x_middle.json", bytes: randomBytes(4 * MIB).toString("hex") }]);
  let turns = 0;
  let isOver = false;
  const turn = () => {
    turns += 1;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  const whole = await readZip(archive, "_middle.json");
  isOver = true;
  expect(whole.problem).toBeNull();
  expect(turns).toBeGreaterThan(10);
  let asked = 0;
  const stopped = await readZip(archive, "_middle.json", { isStopped: () => ++asked > 3 });
  expect(stopped.problem).toMatch(/was not read to its end/);
  expect(asked).toBe(4);
  const stored = writeZip([{ name: "x_middle.json", bytes: randomBytes(3 * MIB), method: "stored" }]);
  expect((await readZip(stored, "_middle.json", { isStopped: () => true })).problem).toMatch(/was not read/);
});

describe("a mutated archive", () => {
  const archives = [
    writeZip([{ name: "scan.md", bytes: "# A" }, WANTED, IMAGE]),
    writeZip([
      { ...WANTED, descriptor: true },
      { ...WANTED, name: "b_middle.json", method: "stored" },
    ]),
    writeZip([{ ...WANTED, bytes: randomBytes(20_000).toString("hex") }], { comment: "made by a scanner" }),
  ];
  const limits = { maxEntries: 10, maxEntryBytes: 50_000, maxTotalBytes: 60_000, maxRatio: 200 };
  type Change = readonly [kind: "set" | "cut" | "insert" | "copy", at: number, byte: number];
  const change = fc.tuple(
    fc.constantFrom("set", "set", "set", "cut", "insert", "copy"),
    fc.double({ min: 0, max: 1, noNaN: true }),
    fc.nat(255),
  );

  function mutate(archive: Buffer, [kind, place, byte]: Change): Buffer {
    if (archive.length === 0) return archive;
    const at = Math.floor(place * (archive.length - 1));
    if (kind === "cut") return Buffer.concat([archive.subarray(0, at), archive.subarray(at + 1 + (byte % 40))]);
    if (kind === "insert")
      return Buffer.concat([archive.subarray(0, at), Buffer.alloc(1 + (byte % 8), byte), archive.subarray(at)]);
    const changed = Buffer.from(archive);
    if (kind === "copy") changed.copy(changed, at, byte % changed.length, (byte % changed.length) + 46);
    else changed[at] = byte;
    return changed;
  }

  test("is read or refused, never more: no exception, no cap exceeded", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...archives),
        fc.array(change, { minLength: 1, maxLength: 6 }),
        async (archive, changes) => {
          const mutated = changes.reduce((bytes, each) => mutate(bytes, each as Change), archive);
          const { members, problem } = await readZip(mutated, "_middle.json", { limits });
          const total = members.reduce((sum, { bytes }) => sum + bytes.length, 0);
          expect(members.length <= 10 && total <= 60_000).toBe(true);
          expect(problem === null ? members.length > 0 : problem.length > 10 && members.length === 0).toBe(true);
        },
      ),
      { numRuns: 1_500 },
    );
  });

  test("of random bytes is refused", async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 400 }), async (bytes) => {
        expect((await read(Buffer.from(bytes))).problem).not.toBeNull();
      }),
    );
  });

  test("full of ends that are none is refused in time that grows with its size alone, else this test times out", async () => {
    const ends = Buffer.concat(Array.from({ length: 2_000_000 }, () => Buffer.from("504b0506ffffffff", "hex")));
    expect((await read(ends)).problem).toMatch(/bytes follow its end/);
  });
});
