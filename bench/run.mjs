#!/usr/bin/env node
// npm run bench [-- --only chat,stream,embedding,ocr,sse,governance,batch,telemetry,import] [--scale 0.2] [--write]
// Measures the goals of this version against their baselines in the same run and prints the table.
// Exit 1 when a "must" goal is missed. --write also puts the table into docs/benchmarks.md.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

if (globalThis.gc === undefined) {
  // Heap figures need an explicit collector; start again with it.
  const child = spawn(process.execPath, ["--expose-gc", fileURLToPath(import.meta.url), ...process.argv.slice(2)], {
    stdio: "inherit",
  });
  const [code] = await once(child, "exit");
  process.exit(code ?? 1);
}

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const { values } = parseArgs({
  options: {
    only: { type: "string" },
    scale: { type: "string", default: "1" },
    write: { type: "boolean", default: false },
  },
});
const scale = Number(values.scale);
if (!(scale > 0)) throw new Error(`--scale must be a positive number, not ${values.scale}`);
const cases = {
  import: async (context) => (await import("./cases/import.mjs")).importCases(context),
  governance: async (context) => (await import("./cases/governance.mjs")).governanceCases(context),
  chat: async (context) => (await import("./cases/chat.mjs")).chatCases(context),
  stream: async (context) => (await import("./cases/stream.mjs")).streamCases(context),
  embedding: async (context) => (await import("./cases/embedding.mjs")).embeddingCases(context),
  ocr: async (context) => (await import("./cases/ocr.mjs")).ocrCases(context),
  sse: async (context) => (await import("./cases/sse.mjs")).sseCases(context),
  telemetry: async (context) => (await import("./cases/telemetry.mjs")).telemetryCases(context),
  redis: async (context) => (await import("./cases/redis.mjs")).redisCases(context),
  batch: async (context) => (await import("./cases/batch.mjs")).batchCases(context),
};
const chosen = values.only === undefined ? Object.keys(cases) : values.only.split(",");
for (const name of chosen)
  if (!(name in cases)) throw new Error(`no benchmark named ${name}; there are: ${Object.keys(cases).join(", ")}`);

const provider = spawn(process.execPath, [join(root, "bench/provider.mjs")], {
  stdio: ["ignore", "pipe", "inherit", "ipc"],
});
const [port] = await once(createInterface({ input: provider.stdout }), "line");
const context = { origin: `http://127.0.0.1:${port}`, scale, root, cli: join(root, "dist/cli.js") };

const rows = [];
try {
  for (const name of chosen) {
    console.error(`… ${name}`);
    rows.push(...(await cases[name](context)));
  }
} finally {
  provider.kill();
}

const number = (value, unit) =>
  unit === "B" || unit === "/s" || unit === "MB" ? Math.round(value).toString() : value.toFixed(unit === "µs" ? 1 : 2);
const met = ({ value, goal, atLeast }) => goal === null || (atLeast ? value >= goal : value <= goal);
const verdict = (row) => (row.goal === null ? "" : met(row) ? "met" : row.must ? "**missed**" : "missed");
const goalText = ({ goal, atLeast, unit, stretch }) =>
  goal === null
    ? "–"
    : `${atLeast ? "≥" : "≤"} ${goal}${unit ? ` ${unit}` : ""}${stretch ? ` (stretch ${number(stretch)})` : ""}`;
const table = [
  "| id | what | measured | goal | |",
  "| --- | --- | --- | --- | --- |",
  ...rows.map(
    (row) =>
      `| ${row.id} | ${row.what} | ${number(row.value, row.unit)}${row.unit ? ` ${row.unit}` : ""} | ${goalText(row)} | ${verdict(row)} |`,
  ),
].join("\n");
console.log(table);
if (values.write) {
  const path = join(root, "docs/benchmarks.md");
  const machine = `${cpus().length} × ${cpus()[0]?.model ?? "unknown CPU"}, Node ${process.version}, ${process.platform} ${process.arch}`;
  const dated = `Machine: ${machine}. Measured ${new Date().toISOString().slice(0, 10)}${scale === 1 ? "" : ` at scale ${scale}`}.`;
  const page = readFileSync(path, "utf8").replace(
    /<!-- table -->[\s\S]*<!-- \/table -->/,
    `<!-- table -->\n${dated}\n\n${table}\n<!-- /table -->`,
  );
  writeFileSync(path, page);
}
const missed = rows.filter((row) => row.must && !met(row));
if (missed.length > 0) {
  console.error(`${missed.length} "must" goal(s) missed`);
  process.exitCode = 1;
}
