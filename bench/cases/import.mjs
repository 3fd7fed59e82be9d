// Import time of the core entry over an empty module, each in a fresh process.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { median } from "../measure.mjs";

export async function importCases({ root }) {
  const folder = mkdtempSync(join(tmpdir(), "pgw-bench-import-"));
  const empty = join(folder, "empty.mjs");
  writeFileSync(empty, "export {};\n");
  const timeOf = (path) => {
    const code = `const s = performance.now(); await import(${JSON.stringify(pathToFileURL(path).href)}); console.log(performance.now() - s);`;
    return Number(spawnSync(process.execPath, ["--input-type=module", "-e", code], { encoding: "utf8" }).stdout);
  };
  const core = [];
  const nothing = [];
  for (let i = 0; i < 9; i += 1) {
    nothing.push(timeOf(empty));
    core.push(timeOf(join(root, "dist/index.js")));
  }
  rmSync(folder, { recursive: true, force: true });
  return [
    {
      id: "import",
      what: "core entry over an empty module, ms",
      value: median(core) - median(nothing),
      goal: 60,
      unit: "ms",
      must: false,
    },
  ];
}
