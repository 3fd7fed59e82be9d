/** For `vi.mock` of the built-in profiles: two more, of providers that enforce less. */

type ProfilesModule = typeof import("../../src/transports/openai/profiles.js");

export async function withWeakProfiles(original: () => Promise<unknown>): Promise<ProfilesModule> {
  const actual = (await original()) as ProfilesModule;
  const openai = actual.profiles.openai!;
  return {
    ...actual,
    profiles: {
      ...actual.profiles,
      "object-only": { ...openai, name: "object-only", hosts: [], structuredOutput: ["json_object"] },
      "prompt-only": { ...openai, name: "prompt-only", hosts: [], structuredOutput: [] },
    },
  };
}
