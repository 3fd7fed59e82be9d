/** The rules of spec 01 as data; `architecture-check.ts` applies them. */

const INNER = ["errors", "domain", "ports"];
const LOWER = [
  ...INNER,
  "governance",
  "backends",
  "transports",
  "telemetry",
  "config",
  "structured",
  "status",
  "version",
  "gather-bounded",
  "make-folder",
  "regular-file",
];

/** Layer (a folder of src, or a file right in it) → the other layers it may import. */
export const ALLOWED_IMPORTS: Readonly<Record<string, readonly string[]>> = {
  errors: [],
  version: [],
  "gather-bounded": [],
  "make-folder": [],
  "regular-file": [],
  domain: ["errors"],
  ports: ["domain", "errors"],
  governance: INNER,
  // A governor's options are judged by the tables that a client's are judged by.
  backends: [...INNER, "config"],
  transports: INNER,
  // Backends: its connection to a server needs a clock of its own where nobody gives it a Runtime.
  telemetry: [...INNER, "backends", "regular-file"],
  config: [...INNER, "regular-file"],
  structured: INNER,
  // Pages of documents, and what people look at.
  documents: INNER,
  // Files for people beside the telemetry, with its knowledge of processes.
  status: [...INNER, "governance", "telemetry", "make-folder", "regular-file"],
  clients: LOWER,
  // The composition root in two files: what all clients share, and the clients themselves.
  assembly: [...LOWER, "clients"],
  gateway: [...LOWER, "clients", "assembly"],
  batch: [...LOWER, "clients", "gateway", "documents"],
  testing: [...INNER, "backends"],
  simulation: [...LOWER, "clients", "gateway", "testing"],
  index: [...LOWER, "clients", "gateway", "batch"],
  cli: [...LOWER, "clients", "gateway", "batch", "documents", "testing"],
};

/** Folders inside a layer that are one of their own: `polygateway/testing` must not bring the client with it. */
export const INNER_LAYERS: Readonly<Record<string, string>> = { "src/testing/simulation/": "simulation" };

/** Layers without input and output: what they may import from Node (hashing is a pure function). */
export const PURE_LAYERS: Readonly<Record<string, readonly string[]>> = {
  errors: [],
  domain: ["node:crypto"],
  ports: [],
  governance: [],
};

/** Package → the one layer that knows it. */
export const PACKAGE_HOMES: Readonly<Record<string, string>> = {
  undici: "transports",
  "lru-cache": "backends",
  zod: "config",
  ioredis: "backends",
  commander: "cli",
  "better-sqlite3": "telemetry",
  pg: "telemetry",
  yaml: "config",
  jsonrepair: "structured",
  "@cfworker/json-schema": "structured",
  "@hyzyla/pdfium": "documents",
};

/** `object.member` or a bare name → where it may stand (path prefixes). */
export const HOMES: Readonly<Record<string, readonly string[]>> = {
  "Date.now": ["src/backends/system.ts"],
  "performance.now": ["src/backends/system.ts"],
  "Math.random": ["src/backends/system.ts"],
  setTimeout: ["src/backends/system.ts"],
  setInterval: [],
  "AbortSignal.timeout": [],
  "AbortSignal.any": [],
  randomUUID: [],
  randomBytes: ["src/backends/system.ts"],
  randomInt: [],
  randomFillSync: ["src/backends/system.ts"],
  getRandomValues: [],
  "process.env": ["src/config/env.ts", "src/cli/"],
  console: ["src/cli/"],
};

/** Modules that hand out what `HOMES` guards. */
export const FORBIDDEN_MODULES: readonly string[] = ["node:timers", "node:timers/promises", "node:perf_hooks"];

export const MAX_LINES = 300;

/** Longer files, each with the reason why it is one subject. */
export const LONG_FILES: Readonly<Record<string, string>> = {
  "src/backends/redis/tick-script.ts": "made by scripts/build-lua.mjs",
  "src/errors.ts": "the taxonomy: every class, code and reason on one page",
  "src/transports/http.ts": "one exchange from dispatch to end, with the faults of the HTTP library kept in one place",
  "src/transports/openai/attempt.ts": "one state machine: every byte of an answer goes through its phases",
};

/** `export *` is a barrel; these hand on types only. */
export const STAR_EXPORTS: Readonly<Record<string, string>> = {
  "src/ports/governor.ts": "the messages of the port belong to it",
};

/** Front doors: the only index files. */
export const INDEX_FILES: readonly string[] = ["src/index.ts", "src/testing/index.ts", "src/backends/redis/index.ts"];
