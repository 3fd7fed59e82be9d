import { OPENAI_PROFILE, type ProviderProfile } from "../../domain/profile.js";
import { CHINA_PROFILES } from "./profiles-china.js";
import { GLOBAL_PROFILES } from "./profiles-global.js";
import { HOST_PROFILES } from "./profiles-hosts.js";
import { SERVER_PROFILES } from "./profiles-servers.js";

function frozen<T>(value: T): Readonly<T> {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  for (const inner of Object.values(value)) frozen(inner);
  return Object.freeze(value);
}

/**
 * The built-in profiles by name, frozen to the ground. `openai` is the fallback for every host that no profile claims.
 * Change one by laying fields over it: `profile: { extends: "glm", streamOptions: false }`.
 */
export const profiles = frozen({
  openai: OPENAI_PROFILE,
  ...GLOBAL_PROFILES,
  ...CHINA_PROFILES,
  ...HOST_PROFILES,
  ...SERVER_PROFILES,
});

const ALL: readonly ProviderProfile[] = Object.values(profiles);

function claims(pattern: string, host: string): boolean {
  return pattern.startsWith("*.") ? host.endsWith(pattern.slice(1)) : host === pattern;
}

/** The profile for a base URL: by its host, else `openai`. Never throws. */
export function profileFor(baseUrl: string): ProviderProfile {
  const host = URL.canParse(baseUrl) ? new URL(baseUrl).hostname.toLowerCase() : "";
  const match = ALL.find((profile) => profile.hosts.some((pattern) => claims(pattern, host)));
  return match ?? OPENAI_PROFILE;
}
