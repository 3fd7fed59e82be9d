/** Records that need a feature which isn't built: by reason, one by one, so that no record is left out in silence. */
const LATER: Readonly<Record<string, string>> = {
  "the HTTP server":
    "sv-commit-late sv-content-length-bytes sv-embed-base64-default sv-empty-stream-error " +
    "sv-index-ids-normalised sv-midstream-error-frame sv-nulls-omitted sv-preserve-400 sv-retry-headers " +
    "sv-unknown-params sv-usage-asked sv-usage-asked-missing sv-usage-gate",
};

/** Record id → what it waits for. */
export const skippedCases: ReadonlyMap<string, string> = new Map(
  Object.entries(LATER).flatMap(([reason, ids]) => ids.split(" ").map((id) => [id, reason] as const)),
);

/** Records that need a service of the tests, by the file that plays them. */
export const playedElsewhere: Readonly<Record<string, readonly string[]>> = {
  "test/redis/store-cases.test.ts": ["rl-crossslot", "rl-noscript", "rl-pending-forever", "rl-resend-twice"],
  "test/redis/governor-cases.test.ts": ["rl-block-zero", "rl-lua-nil", "rl-no-ttl"],
};
