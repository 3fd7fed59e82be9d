import { describe, expect, test } from "vitest";
import type { ConfigProblem } from "../errors.js";
import type { GatewayOptions } from "./options.js";
import { inspectScope } from "./resolve.js";

function fromCode(more: Record<string, unknown>): readonly ConfigProblem[] {
  const source = { name: "a_1", baseUrl: "http://127.0.0.1:8080/v1", apiKey: "none", model: "m", ...more };
  return inspectScope({ scope: "LLM", sources: [source as GatewayOptions["sources"][number]] }).problems;
}

describe("an address is told without its secrets", () => {
  test.each([
    ["htp:/x?api_key=SECRET", "htp:/x?…"],
    ["http://u:SECRET@h/v1", "http://…@h/v1"],
    ["htp:/u:SECRET@h/v1", "…@h/v1"],
    ["//h/v1?a=1&key=SECRET", "//h/v1?…"],
    ["http:/h/v1#token=SECRET", "http:/h/v1#…"],
    ["h/v1?SECRET", "h/v1?…"],
    ["htp://h/sk-SECRETSECRET/v1", "htp://h/sk-…CRET/v1"],
  ])("%s", (baseUrl, shown) => {
    expect(fromCode({ baseUrl })[0]).toMatchObject({ key: "sources[0].baseUrl", value: `"${shown}"` });
  });

  test("under another name", () => {
    const [problem] = fromCode({ tpmCharge: "htp:/x?api_key=SECRET&b=2" });
    expect(problem?.value).toBe('"htp:/x?api_key=…&b=…"');
  });
});
