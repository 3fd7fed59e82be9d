import { describe, expect, it } from "vitest";
import { useProviderBench } from "./support-batch/provider-bench.js";

/** Batch lines that ask for a schema: what doesn't fit is a failed line that says why. */

const bench = useProviderBench();

const format = {
  type: "json_schema",
  json_schema: { name: "x", schema: { type: "object", properties: { a: { type: "number" } }, required: ["a"] } },
};

function line(id: string, more: object = {}): string {
  const body = { messages: [{ role: "user", content: id }], response_format: { ...format, ...more } };
  return `${JSON.stringify({ custom_id: id, method: "POST", url: "/v1/chat/completions", body })}\n`;
}

function answers(content: string): void {
  const body = { choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: "stop" }] };
  bench.provider.clearScripts();
  bench.provider.script(
    {
      status: 200,
      headers: { "content-type": "application/json" },
      chunks: [{ utf8: JSON.stringify(body) }],
      end: "close",
    },
    "always",
  );
}

const lineOf = (id: string) =>
  bench.out().find((one) => one.custom_id === id) as unknown as {
    response: { body: { choices: { message: { content: string } }[] } } | null;
    error: { code: string; class: string; issues?: unknown } | null;
  };

describe("a batch line with a response format", () => {
  it("is read and checked, and tells in OUT what is wrong; --retry-failed asks again", async () => {
    bench.workspace.write("in.jsonl", line("checked") + line("unchecked", { validate: false }));
    answers('{"a":"x"}');
    expect((await bench.batch()).code).toBe(2);
    expect(lineOf("checked")).toMatchObject({
      response: null,
      error: {
        code: "schema",
        class: "ResultInvalidError",
        issues: [{ path: "a", expected: "number", got: '"x"' }],
      },
    });
    expect(lineOf("unchecked")).toMatchObject({ error: null });
    answers('Here: {"a":1}');
    expect((await bench.batch(["--retry-failed"])).code).toBe(0);
    expect(lineOf("checked")).toMatchObject({
      error: null,
      response: { body: { choices: [{ message: { content: 'Here: {"a":1}' } }] } },
    });
    const report = await bench.run(["report", "--json"]);
    expect(report.stdout).toContain("schema");
  });
});
