import type { Runtime } from "../../ports/runtime.js";

/** The part of a `Runtime` that a simulated provider lives by; a test may pass its own. */
export type ProviderClock = Pick<Runtime, "now" | "wallNow" | "setTimer">;
