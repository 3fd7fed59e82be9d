import type { OcrImage, OcrMediaType } from "../../domain/ocr.js";

/** The name that a server sees: some decide by its ending alone, and repeat the rest of it in addresses. */
const FILE_NAMES: Readonly<Record<OcrMediaType, string>> = {
  "image/png": "scan.png",
  "image/jpeg": "scan.jpg",
  "image/webp": "scan.webp",
  "image/tiff": "scan.tiff",
  "application/pdf": "scan.pdf",
};

export interface MultipartForm {
  /** The field that holds the file. */
  readonly fileField: string;
  readonly image: OcrImage;
  /** Further fields, in their order. Names and values are ours: ASCII without quotes or line breaks. */
  readonly fields?: Readonly<Record<string, string>>;
  /** Unforeseeable for whoever made the picture, so that no picture can hold the boundary on purpose. */
  readonly id: string;
}

export interface MultipartBody {
  readonly body: Buffer;
  readonly contentType: string;
}

const MAX_ID_UNITS = 40;

/** `multipart/form-data` (RFC 7578) with one file. */
export function multipartBody({ fileField, image, fields = {}, id }: MultipartForm): MultipartBody {
  const boundary = boundaryFor(image.bytes, id);
  const disposition = 'content-disposition: form-data; name="';
  const texts = Object.entries(fields).map(
    ([name, value]) => `--${boundary}\r\n${disposition}${name}"\r\n\r\n${value}\r\n`,
  );
  const fileName = FILE_NAMES[image.mediaType];
  const file = `--${boundary}\r\n${disposition}${fileField}"; filename="${fileName}"\r\ncontent-type: ${image.mediaType}\r\n\r\n`;
  const body = Buffer.concat([Buffer.from(texts.join("") + file), image.bytes, Buffer.from(`\r\n--${boundary}--\r\n`)]);
  return { body, contentType: `multipart/form-data; boundary=${boundary}` };
}

function boundaryFor(bytes: Buffer, id: string): string {
  const stem = `polygateway${id.replace(/[^0-9a-z]/gi, "").slice(0, MAX_ID_UNITS)}`;
  let boundary = stem;
  for (let n = 1; bytes.includes(boundary); n += 1) boundary = `${stem}x${n}`;
  return boundary;
}
