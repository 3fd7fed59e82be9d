const MOST_REQUESTS = 16;
const MOST_TEXTS = 4_096;

/** Requests that `polygateway embed` keeps in flight where nothing says how many; fewer where large ones would fill the memory. */
export function mostEmbedRequests(batchSize: number): number {
  return Math.max(1, Math.min(MOST_REQUESTS, Math.floor(MOST_TEXTS / batchSize)));
}
