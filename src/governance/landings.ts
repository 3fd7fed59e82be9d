/** Who waits until the governor has been told: ticks in flight land one after the other. */
export interface Landings {
  /** Resolves when this many more ticks have landed. */
  after(count: number): Promise<void>;
  landed(): void;
  /** Nothing is left to be told. */
  allTold(): void;
}

export function createLandings(): Landings {
  let landings = 0;
  let waiting: { readonly landing: number; readonly resolve: () => void }[] = [];

  function tell(landing: number): void {
    if (waiting.length === 0) return;
    const due = waiting.filter((waiter) => waiter.landing <= landing);
    waiting = waiting.filter((waiter) => waiter.landing > landing);
    for (const { resolve } of due) resolve();
  }

  return {
    after: (count) => new Promise((resolve) => waiting.push({ landing: landings + count, resolve })),
    landed() {
      landings += 1;
      tell(landings);
    },
    allTold: () => tell(Infinity),
  };
}
