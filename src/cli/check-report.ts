import type { ResolvedCache } from "../config/cache.js";
import type { EnvInspection } from "../config/env.js";
import type { ConfigNote } from "../config/invariants.js";
import type { EmbeddingConfig } from "../domain/embedding.js";
import type { ScopeConfig } from "../domain/scope.js";
import type { ConfigProblem } from "../errors.js";
import type { sqliteAvailable } from "../telemetry/sqlite.js";

/** One scope as it would be governed. */
export interface CheckedScope {
  readonly inspection: EnvInspection;
  readonly config: ScopeConfig;
  readonly cache: ResolvedCache;
  /** null: a scope for chat. */
  readonly embedding: EmbeddingConfig | null;
}

/** Everything `check` found out. */
export interface CheckReport {
  /** The file that is the configuration; null = the environment is. */
  readonly configFile: string | null;
  readonly envFile: string | null;
  readonly nodeVersion: string;
  readonly sqlite: ReturnType<typeof sqliteAvailable>;
  readonly scopes: readonly CheckedScope[];
  readonly problems: readonly ConfigProblem[];
  readonly notes: readonly ConfigNote[];
}
