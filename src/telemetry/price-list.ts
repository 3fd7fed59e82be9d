/** Prices per million tokens in your currency; the snake_case spelling is read too. */
export interface ModelPrice {
  readonly inputPer1M: number;
  readonly outputPer1M: number;
  /** Prompt tokens the provider had cached. Default: as `inputPer1M`. */
  readonly cachedInputPer1M?: number;
  /** Prompt tokens the provider wrote into its cache. Default: as `inputPer1M`. */
  readonly cacheWritePer1M?: number;
  /** Completion tokens spent on thinking. Default: as `outputPer1M`. */
  readonly reasoningPer1M?: number;
  /** For each image of a request, on top of its tokens. */
  readonly perImage?: number;
  /** For each page read, on top of tokens. */
  readonly perPage?: number;
  /** For people; entries that name different ones can't be in one list. */
  readonly currency?: string;
}

interface SnakeCasePrice {
  readonly input_per_1m: number;
  readonly output_per_1m: number;
  readonly cached_input_per_1m?: number;
  readonly cache_write_per_1m?: number;
  readonly reasoning_per_1m?: number;
  readonly per_image?: number;
  readonly per_page?: number;
  readonly currency?: string;
}

/** Of a service that is paid by the page alone, as OCR servers are. */
interface PagePrice {
  readonly perPage: number;
  readonly currency?: string;
}

/** An entry of LiteLLM's file, as it is. */
interface LiteLlmPrice {
  readonly litellm_provider: string;
  readonly [field: string]: unknown;
}

export type PriceList = Readonly<Record<string, ModelPrice | SnakeCasePrice | PagePrice | LiteLlmPrice>>;
