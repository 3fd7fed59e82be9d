import type { RedisClient } from "./client.js";
import { quieted } from "./quiet.js";

/** A connection that listens; a client in this state can do nothing else, so it is a copy. */
export interface Subscriber {
  /** Kept through reconnections. Failures are silent: the client tries again by itself. */
  subscribe(channel: string): void;
  close(): void;
}

interface SubscribingClient extends RedisClient {
  readonly isCluster?: boolean;
  duplicate(...args: unknown[]): SubscribingClient;
  subscribe(...channels: string[]): Promise<unknown>;
}

export function openSubscriber(client: RedisClient, hear: (text: string) => void): Subscriber {
  const channels = new Set<string>();
  let own: SubscribingClient | null = null;
  const subscribeAll = (): void => {
    if (channels.size > 0) own?.subscribe(...channels).catch(() => {});
  };
  const open = (): SubscribingClient => {
    const copy = copyOf(client as SubscribingClient);
    copy.on("message", ((_channel: string, text: string) => hear(text)) as never);
    copy.on("ready", subscribeAll);
    // An error nobody listens to would end the process; the governor's own connection tells of it.
    copy.on("error", () => {});
    copy.connect().catch(() => {});
    return copy;
  };
  return {
    subscribe(channel) {
      channels.add(channel);
      if (own === null) own = open();
      else if (own.status === "ready") own.subscribe(channel).catch(() => {});
    },
    close() {
      own?.disconnect();
      own = null;
      channels.clear();
    },
  };
}

/**
 * What the client subscribes by itself after a reconnection is a promise nobody listens to: cut once more, it would end the
 * process. So it is done here.
 */
function copyOf(client: SubscribingClient): SubscribingClient {
  if (client.isCluster !== true) return quieted(client.duplicate({ autoResubscribe: false }));
  const copy = client.duplicate();
  copy.on("+node", quieted as (node: unknown) => void);
  return copy;
}
