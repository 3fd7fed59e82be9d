import { deflateRawSync } from "node:zlib";
import { writeZip, type ZipEntryPlan } from "./zip-writer.js";

/** Ways in which an archive is bad; `none` = it holds no layout. */
export type BrokenArchive = "cut" | "crc" | "encrypted" | "traversal" | "bomb" | "overlap" | "none";

export interface ArchivePlan {
  /** The `middle.json` of all pages. */
  readonly json: string;
  readonly pages: number;
  readonly isSplit: boolean;
  readonly fault?: BrokenArchive | undefined;
}

const BOMB_BYTES = 100 * 1_024 * 1_024;

/** Each page of a split document has a folder, and calls itself the first. */
function splitEntries(json: string, pages: number): ZipEntryPlan[] {
  const { pdf_info: info } = JSON.parse(json.replaceAll("NaN", "null")) as { pdf_info: object[] };
  return Array.from({ length: pages }, (_, page) => ({
    name: `page_${page}/scan_a1b2_page_${page}_middle.json`,
    bytes: JSON.stringify({ pdf_info: [{ ...info[page], page_idx: 0 }] }),
  }));
}

function layoutEntries({ json, pages, isSplit, fault }: ArchivePlan): ZipEntryPlan[] {
  if (fault === "none") return [];
  if (isSplit) return splitEntries(json, pages);
  const layout: ZipEntryPlan = { name: "scan_middle.json", bytes: json };
  if (fault === "crc") return [{ ...layout, crc: 0xbad }];
  if (fault === "encrypted") return [{ ...layout, flags: 1 }];
  if (fault === "traversal") return [layout, { name: "../../etc/cron.d/x", bytes: "* * * * * root id" }];
  if (fault === "bomb") return [{ ...layout, packed: deflateRawSync(Buffer.alloc(BOMB_BYTES)) }];
  return fault === "overlap" ? [layout, { name: "scan_copy_middle.json", bytes: json, offset: "previous" }] : [layout];
}

/** The archive of one parsed document, with the other files that a server puts into it. */
export function monkeyArchive(plan: ArchivePlan): Buffer {
  const archive = writeZip([
    { name: "scan.md", bytes: "# Scan" },
    ...layoutEntries(plan),
    { name: "scan_content_list.json", bytes: "[]" },
    { name: "images/ab.jpg", bytes: Buffer.from("\xff\xd8 picture", "latin1"), method: "stored" },
  ]);
  return plan.fault === "cut" ? archive.subarray(0, archive.length - 30) : archive;
}
