/** Which limit a 429 named, by its headers or its words. */
export type RateLimitDimension = "requests" | "tokens" | "concurrency" | "unknown";

/** `x-ratelimit-…` headers of one answer; absent = not said. */
export interface UpstreamLimits {
  /** Per minute. */
  readonly limitRequests?: number;
  readonly limitTokens?: number;
  readonly remainingRequests?: number;
  readonly remainingTokens?: number;
}
