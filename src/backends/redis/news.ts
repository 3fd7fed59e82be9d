import type { GovernorEvent } from "../../ports/governor.js";
import type { RedisConnection } from "./connection.js";

/** What other processes of the scope tell each other (spec 10 §1). Lost news costs time: who waits asks again by itself. */
export interface News {
  /** This worker asks through this governor: hears what concerns it alone, and not what it said itself. */
  follow(worker: string): void;
  close(): void;
}

export function createNews(connection: RedisConnection, prefix: string, hear: (event: GovernorEvent) => void): News {
  const workers = new Set<string>();
  const subscriber = connection.subscriber((text) => {
    const message = parsed(text);
    if (message !== null && !workers.has(message.from)) hear(message.event);
  });
  return {
    follow(worker) {
      if (workers.has(worker)) return;
      if (workers.size === 0) subscriber.subscribe(`${prefix}ev`);
      workers.add(worker);
      subscriber.subscribe(`${prefix}wake:${worker}`);
    },
    close: () => subscriber.close(),
  };
}

/** Anybody may publish anything. */
function parsed(text: string): { from: string; event: GovernorEvent } | null {
  try {
    const { from, event } = JSON.parse(text) as { from?: unknown; event?: Partial<GovernorEvent> };
    if (typeof from !== "string" || typeof event?.source !== "string") return null;
    if (event.type !== "capacity" && event.type !== "state" && event.type !== "cooling") return null;
    return { from, event: event as GovernorEvent };
  } catch {
    return null;
  }
}
