/** Pictures with true headers and nothing behind them: no server of the tests looks further. */

export function pngOf(width: number, height: number): Buffer {
  const bytes = Buffer.alloc(57);
  Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13]).copy(bytes);
  bytes.write("IHDR", 12, "latin1");
  bytes.writeUInt32BE(width, 16);
  bytes.writeUInt32BE(height, 20);
  return bytes;
}

export function tiffOf(width: number, height: number): Buffer {
  const bytes = Buffer.alloc(38);
  Buffer.from([0x49, 0x49, 0x2a, 0, 8, 0, 0, 0, 2, 0]).copy(bytes);
  for (const [index, [tag, value]] of [
    [256, width],
    [257, height],
  ].entries()) {
    const at = 10 + index * 12;
    bytes.writeUInt16LE(tag!, at);
    bytes.writeUInt16LE(4, at + 2);
    bytes.writeUInt32LE(1, at + 4);
    bytes.writeUInt32LE(value!, at + 8);
  }
  return bytes;
}

/** A PDF of this many pages, each with a line of text; `size` in points, Letter by default. */
export function pdfOf(pages: number, [width, height]: readonly [number, number] = [612, 792]): Buffer {
  const objects: string[] = ["<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"];
  const parent = 2 * pages + 2;
  for (let page = 1; page <= pages; page += 1) {
    const text = `BT /F1 24 Tf 20 ${height - 60} Td (Page ${page} of ${pages}) Tj ET`;
    objects.push(`<< /Length ${text.length} >>\nstream\n${text}\nendstream`);
  }
  for (let page = 1; page <= pages; page += 1) {
    const resources = "<< /Font << /F1 1 0 R >> >>";
    objects.push(
      `<< /Type /Page /Parent ${parent} 0 R /MediaBox [0 0 ${width} ${height}] /Contents ${page + 1} 0 R /Resources ${resources} >>`,
    );
  }
  const kids = Array.from({ length: pages }, (_, index) => `${pages + 2 + index} 0 R`).join(" ");
  objects.push(`<< /Type /Pages /Kids [${kids}] /Count ${pages} >>`, `<< /Type /Catalog /Pages ${parent} 0 R >>`);
  let text = "%PDF-1.4\n";
  const offsets = objects.map((object, index) => {
    const at = text.length;
    text += `${index + 1} 0 obj\n${object}\nendobj\n`;
    return at;
  });
  const entries = offsets.map((at) => `${String(at).padStart(10, "0")} 00000 n \n`).join("");
  const trailer = `trailer << /Size ${objects.length + 1} /Root ${parent + 1} 0 R >>\nstartxref\n${text.length}\n%%EOF\n`;
  return Buffer.from(`${text}xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${entries}${trailer}`, "latin1");
}
