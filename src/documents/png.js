// PNG for the thread that draws pages, hence plain JavaScript.
import { crc32, deflateSync } from "node:zlib";

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const BYTES_PER_PIXEL = 3;
const NO_FILTER = 0;
const EIGHT_BITS = 8;
const TRUECOLOUR = 2;

/**
 * A bitmap of blue, green, red and alpha bytes as a PNG without alpha. The only picture ever written is a rendered page,
 * on white: PNG needs no more than its three chunks for that (PNG specification, third edition, 11.2).
 *
 * @param {Uint8Array} bgra
 * @param {number} width
 * @param {number} height
 */
export function encodePng(bgra, width, height) {
  const rowBytes = 1 + width * BYTES_PER_PIXEL;
  const rows = Buffer.alloc(rowBytes * height);
  for (let y = 0, from = 0; y < height; y += 1) {
    let to = y * rowBytes;
    rows[to++] = NO_FILTER;
    for (let x = 0; x < width; x += 1, from += 4) {
      rows[to++] = /** @type {number} */ (bgra[from + 2]);
      rows[to++] = /** @type {number} */ (bgra[from + 1]);
      rows[to++] = /** @type {number} */ (bgra[from]);
    }
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header[8] = EIGHT_BITS;
  header[9] = TRUECOLOUR;
  const pixels = deflateSync(rows, { level: 4 });
  return Buffer.concat([SIGNATURE, chunk("IHDR", header), chunk("IDAT", pixels), chunk("IEND", Buffer.alloc(0))]);
}

/**
 * @param {string} type
 * @param {Buffer} data
 */
function chunk(type, data) {
  const framed = Buffer.alloc(12 + data.length);
  framed.writeUInt32BE(data.length, 0);
  framed.write(type, 4, "latin1");
  data.copy(framed, 8);
  framed.writeUInt32BE(crc32(framed.subarray(4, 8 + data.length)), 8 + data.length);
  return framed;
}
