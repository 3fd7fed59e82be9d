import fc from "fast-check";
import { expect, test } from "vitest";
import { readMultipart } from "../../testing/ocr/multipart-reader.js";
import { multipartBody } from "./multipart.js";

const image = (bytes: Buffer) => ({ bytes, mediaType: "image/png", size: null }) as const;

test("whatever the bytes of a picture, they arrive as they are", () => {
  const bytes = fc.oneof(fc.uint8Array(), fc.string()).map((raw) => Buffer.from(raw as string));
  fc.assert(
    fc.property(bytes, fc.constantFrom("a", "0191-ab", 'x"y\r\n', "", "k".repeat(90)), (content, id) => {
      const { body, contentType } = multipartBody({
        fileField: "files",
        image: image(content),
        fields: { a: "true" },
        id,
      });
      expect(contentType).toMatch(/^multipart\/form-data; boundary=[0-9A-Za-z]{11,70}$/);
      const parts = readMultipart(contentType, body);
      expect(parts?.map(({ name, fileName }) => [name, fileName])).toEqual([
        ["a", null],
        ["files", "scan.png"],
      ]);
      expect(parts?.[0]?.bytes.toString()).toBe("true");
      expect(parts?.[1]?.bytes.equals(content)).toBe(true);
    }),
  );
});

test("a picture that holds the boundary gets another one", () => {
  const content = Buffer.from("\r\n--polygatewayabc\r\n--polygatewayabcx1--");
  const { body, contentType } = multipartBody({ fileField: "file", image: image(content), id: "abc" });
  expect(contentType).toBe("multipart/form-data; boundary=polygatewayabcx2");
  expect(readMultipart(contentType, body)?.[0]?.bytes.equals(content)).toBe(true);
});

test.each([
  ["no form", "application/json", "{}"],
  ["without a boundary", "multipart/form-data", "--x--"],
  ["cut", "multipart/form-data; boundary=x", '--x\r\ncontent-disposition: form-data; name="a"\r\n\r\nabc'],
  ["of another boundary", "multipart/form-data; boundary=y", "--x\r\n\r\n\r\n--x--"],
])("a body %s isn't read by the simulated servers", (_name, contentType, body) => {
  expect(readMultipart(contentType, Buffer.from(body))).toBeNull();
});
