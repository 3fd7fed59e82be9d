import { OPENAI_PROFILE, type ProviderProfile } from "../../domain/profile.js";

const relay: ProviderProfile = { ...OPENAI_PROFILE, name: "relay", hosts: [], doneIsProof: false };

/** The built-in profiles. `openai` is the fallback for every host that no profile claims. */
export const profiles: Readonly<Record<string, ProviderProfile>> = Object.freeze({ openai: OPENAI_PROFILE, relay });

function claims(pattern: string, host: string): boolean {
  return pattern.startsWith("*.") ? host.endsWith(pattern.slice(1)) : host === pattern;
}

/** The profile for a base URL: by its host, else `openai`. Never throws. */
export function profileFor(baseUrl: string): ProviderProfile {
  const host = URL.canParse(baseUrl) ? new URL(baseUrl).hostname.toLowerCase() : "";
  const match = Object.values(profiles).find((profile) => profile.hosts.some((pattern) => claims(pattern, host)));
  return match ?? OPENAI_PROFILE;
}
