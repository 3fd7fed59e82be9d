/** A place that answers the OpenAI chat API, as `init` writes it down. */
export interface StarterProvider {
  readonly name: string;
  /** What its sources are called, where that is not its name. */
  readonly sourceName?: string;
  readonly baseUrl: string;
  /** One of its models, to begin with. */
  readonly model: string;
  /** The variable its key is usually kept in; undefined = it takes none. */
  readonly keyName?: string;
}

/** Addresses: spec, reference-providers. Without a key: servers on this machine. */
export const STARTER_PROVIDERS: readonly StarterProvider[] = [
  { name: "openai", baseUrl: "https://api.openai.com/v1", model: "gpt-4.1-mini", keyName: "OPENAI_API_KEY" },
  { name: "deepseek", baseUrl: "https://api.deepseek.com", model: "deepseek-chat", keyName: "DEEPSEEK_API_KEY" },
  {
    name: "qwen",
    baseUrl: "https://dashscope.aliyuncs.com/compatible-mode/v1",
    model: "qwen-plus",
    keyName: "DASHSCOPE_API_KEY",
  },
  { name: "glm", baseUrl: "https://open.bigmodel.cn/api/paas/v4", model: "glm-4.7", keyName: "ZHIPU_API_KEY" },
  { name: "kimi", baseUrl: "https://api.moonshot.ai/v1", model: "kimi-k2.6", keyName: "MOONSHOT_API_KEY" },
  { name: "minimax", baseUrl: "https://api.minimax.io/v1", model: "MiniMax-M2", keyName: "MINIMAX_API_KEY" },
  {
    name: "gemini",
    baseUrl: "https://generativelanguage.googleapis.com/v1beta/openai",
    model: "gemini-2.5-flash",
    keyName: "GEMINI_API_KEY",
  },
  { name: "mistral", baseUrl: "https://api.mistral.ai/v1", model: "mistral-small-latest", keyName: "MISTRAL_API_KEY" },
  { name: "groq", baseUrl: "https://api.groq.com/openai/v1", model: "openai/gpt-oss-20b", keyName: "GROQ_API_KEY" },
  {
    name: "openrouter",
    baseUrl: "https://openrouter.ai/api/v1",
    model: "openai/gpt-4.1-mini",
    keyName: "OPENROUTER_API_KEY",
  },
  { name: "vllm", baseUrl: "http://127.0.0.1:8000/v1", model: "Qwen/Qwen3-8B" },
  { name: "ollama", baseUrl: "http://127.0.0.1:11434/v1", model: "qwen3:8b" },
  // `mock` and the documents call it SIM.
  { name: "mock", sourceName: "sim", baseUrl: "http://127.0.0.1:8787/v1", model: "sim-model" },
];

/** `qwen` of the source `qwen_1`. */
export function sourceNameOf({ name, sourceName = name }: StarterProvider): string {
  return sourceName;
}

/** Another server: its address and model are asked for. */
export const CUSTOM_PROVIDER = "custom";
export const PROVIDER_NAMES: readonly string[] = [...STARTER_PROVIDERS.map(({ name }) => name), CUSTOM_PROVIDER];
