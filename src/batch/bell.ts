/** Wakes one sleeper; a ring before the sleep is not lost. */
export function createBell() {
  let rang = false;
  let wakeUp: (() => void) | undefined;
  return {
    ring(): void {
      rang = true;
      wakeUp?.();
    },
    async rung(): Promise<void> {
      if (!rang) {
        await new Promise<void>((resolve) => {
          wakeUp = resolve;
        });
      }
      wakeUp = undefined;
      rang = false;
    },
  };
}
