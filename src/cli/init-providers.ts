import type { OcrTransportName } from "../domain/ocr.js";
import { profileFor, profiles } from "../transports/openai/profiles.js";

/** A place that answers, as `init` writes it down. */
export interface StarterProvider {
  readonly name: string;
  /** What its sources are called, where that is not its name. */
  readonly sourceName?: string;
  readonly baseUrl: string;
  /** One of its models, to begin with. */
  readonly model: string;
  /** The variable its key is usually kept in; undefined = it takes none. */
  readonly keyName?: string;
  /** Address and model are stand-ins: what has to be put in their place, as the end of a sentence. */
  readonly placeholder?: string;
  /** Its protocol, where that is not the OpenAI API. */
  readonly transport?: OcrTransportName;
}

/** Ours: it answers only while it is started. */
export const SIMULATED_PROVIDER = "mock";

/** Addresses: spec, reference-providers. Without a key: servers on this machine. */
export const STARTER_PROVIDERS: readonly StarterProvider[] = [
  { name: "openai", baseUrl: "https://api.openai.com/v1", model: "gpt-4.1-mini", keyName: "OPENAI_API_KEY" },
  {
    name: "azure",
    baseUrl: "https://my-resource.openai.azure.com/openai/v1",
    model: "my-deployment",
    keyName: "AZURE_OPENAI_API_KEY",
    placeholder: "the address of your own Azure resource, and the name of your deployment as the model",
  },
  {
    name: "anthropic",
    baseUrl: "https://api.anthropic.com/v1",
    model: "claude-haiku-4-5",
    keyName: "ANTHROPIC_API_KEY",
  },
  {
    name: "gemini",
    baseUrl: "https://generativelanguage.googleapis.com/v1beta/openai",
    model: "gemini-2.5-flash",
    keyName: "GEMINI_API_KEY",
  },
  { name: "mistral", baseUrl: "https://api.mistral.ai/v1", model: "mistral-small-latest", keyName: "MISTRAL_API_KEY" },
  { name: "xai", baseUrl: "https://api.x.ai/v1", model: "grok-4", keyName: "XAI_API_KEY" },
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
    name: "ark",
    baseUrl: "https://ark.cn-beijing.volces.com/api/v3",
    model: "doubao-seed-1-6-250615",
    keyName: "ARK_API_KEY",
  },
  {
    name: "siliconflow",
    baseUrl: "https://api.siliconflow.cn/v1",
    model: "Qwen/Qwen3-8B",
    keyName: "SILICONFLOW_API_KEY",
  },
  { name: "groq", baseUrl: "https://api.groq.com/openai/v1", model: "openai/gpt-oss-20b", keyName: "GROQ_API_KEY" },
  {
    name: "openrouter",
    baseUrl: "https://openrouter.ai/api/v1",
    model: "openai/gpt-4.1-mini",
    keyName: "OPENROUTER_API_KEY",
  },
  {
    name: "together",
    baseUrl: "https://api.together.xyz/v1",
    model: "openai/gpt-oss-20b",
    keyName: "TOGETHER_API_KEY",
  },
  {
    name: "fireworks",
    baseUrl: "https://api.fireworks.ai/inference/v1",
    model: "accounts/fireworks/models/gpt-oss-20b",
    keyName: "FIREWORKS_API_KEY",
  },
  {
    name: "relay",
    baseUrl: "https://relay.example.com/v1",
    model: "my-model",
    keyName: "RELAY_API_KEY",
    placeholder: "the address of your own relay (One API, New API), and one of its models",
  },
  { name: "vllm", baseUrl: "http://127.0.0.1:8000/v1", model: "Qwen/Qwen3-8B" },
  { name: "sglang", baseUrl: "http://127.0.0.1:30000/v1", model: "Qwen/Qwen3-8B" },
  { name: "ollama", baseUrl: "http://127.0.0.1:11434/v1", model: "qwen3:8b" },
  { name: "lmstudio", baseUrl: "http://127.0.0.1:1234/v1", model: "qwen/qwen3-8b" },
  { name: "llamacpp", baseUrl: "http://127.0.0.1:8080/v1", model: "qwen3-8b" },
  // `mock` and the documents call it SIM.
  { name: SIMULATED_PROVIDER, sourceName: "sim", baseUrl: "http://127.0.0.1:8787/v1", model: "sim-model" },
];

/** One embedding model of those that have any. */
const EMBEDDING_MODELS: Readonly<Record<string, string>> = {
  openai: "text-embedding-3-small",
  azure: "my-deployment",
  gemini: "gemini-embedding-001",
  mistral: "mistral-embed",
  qwen: "text-embedding-v4",
  glm: "embedding-3",
  siliconflow: "BAAI/bge-m3",
  relay: "my-model",
  vllm: "BAAI/bge-m3",
  sglang: "BAAI/bge-m3",
  ollama: "bge-m3",
  lmstudio: "text-embedding-nomic-embed-text-v1.5",
  llamacpp: "bge-m3",
  [SIMULATED_PROVIDER]: "sim-embed",
};

export const EMBEDDING_PROVIDERS: readonly StarterProvider[] = STARTER_PROVIDERS.flatMap((provider) => {
  const model = EMBEDDING_MODELS[provider.name];
  return model === undefined ? [] : [{ ...provider, model }];
});

const VLLM = "http://127.0.0.1:8000/v1";

/** OCR servers at their usual ports, and chat models that read. Source names go into names of variables: no dashes. */
export const OCR_PROVIDERS: readonly StarterProvider[] = [
  { name: "monkey-ocr", sourceName: "monkey", baseUrl: "http://127.0.0.1:7861", model: "MonkeyOCR" },
  { name: "mineru", baseUrl: "http://127.0.0.1:8000", model: "MinerU" },
  { name: "paddle", baseUrl: "http://127.0.0.1:8080", model: "PaddleOCR-VL" },
  {
    name: "mistral",
    baseUrl: "https://api.mistral.ai/v1",
    model: "mistral-ocr-latest",
    keyName: "MISTRAL_API_KEY",
  },
  { name: "dots-ocr", sourceName: "dots", baseUrl: VLLM, model: "rednote-hilab/dots.ocr", transport: "vlm" },
  { name: "deepseek-ocr", sourceName: "deepseek", baseUrl: VLLM, model: "deepseek-ai/DeepSeek-OCR", transport: "vlm" },
  { name: "olmocr", baseUrl: VLLM, model: "allenai/olmOCR-2-7B-1025", transport: "vlm" },
  {
    name: "openai",
    baseUrl: "https://api.openai.com/v1",
    model: "gpt-4.1-mini",
    keyName: "OPENAI_API_KEY",
    transport: "vlm",
  },
  {
    name: "qwen",
    baseUrl: "https://dashscope.aliyuncs.com/compatible-mode/v1",
    model: "qwen3-vl-plus",
    keyName: "DASHSCOPE_API_KEY",
    transport: "vlm",
  },
].map((provider) => ({ transport: provider.name, ...provider }) as StarterProvider);

/** `qwen` of the source `qwen_1`. */
export function sourceNameOf({ name, sourceName = name }: StarterProvider): string {
  return sourceName;
}

/** The profile that has to be named, because the address alone would choose another one's dialect. */
export function profileToName({ name, baseUrl }: StarterProvider): string | undefined {
  return Object.hasOwn(profiles, name) && profileFor(baseUrl).name !== name ? name : undefined;
}

/** Is the stand-in still to be replaced? */
export function isPlaceholder({ name, baseUrl, placeholder }: StarterProvider): boolean {
  // Of every purpose: the stand-in address of a provider is the same.
  return placeholder !== undefined && STARTER_PROVIDERS.some((each) => each.name === name && each.baseUrl === baseUrl);
}

/** Another server: its address and model are asked for. */
export const CUSTOM_PROVIDER = "custom";

/** Names that `--provider` takes. */
export function namesOf(providers: readonly StarterProvider[]): readonly string[] {
  return [...providers.map(({ name }) => name), CUSTOM_PROVIDER];
}
