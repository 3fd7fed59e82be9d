/**
 * One listener on a caller's signal however many calls share it: adding to an EventTarget takes longer the more
 * listeners it has, and Node warns of a leak from the eleventh on.
 */
const hubs = new WeakMap<
  AbortSignal,
  { readonly listeners: Set<(reason: unknown) => void>; readonly fire: () => void }
>();

/** Calls back once when the signal fires; the returned function takes the listener away. For a signal not yet aborted. */
export function onSignal(signal: AbortSignal, listener: (reason: unknown) => void): () => void {
  let hub = hubs.get(signal);
  if (hub === undefined) {
    const listeners = new Set<(reason: unknown) => void>();
    const fire = (): void => {
      hubs.delete(signal);
      for (const told of [...listeners]) told(signal.reason);
    };
    hub = { listeners, fire };
    hubs.set(signal, hub);
    signal.addEventListener("abort", fire, { once: true });
  }
  const { listeners, fire } = hub;
  // A function of its own for each call: the same one given twice must be told twice.
  const own = (reason: unknown): void => listener(reason);
  listeners.add(own);
  return () => {
    if (!listeners.delete(own) || listeners.size > 0 || hubs.get(signal)?.listeners !== listeners) return;
    hubs.delete(signal);
    signal.removeEventListener("abort", fire);
  };
}
