const EXAMPLES = 5;

/** One invariant: how often it was looked at, and how often it was broken. */
export class Finding {
  checks = 0;
  violations = 0;
  /** The first few, in words. */
  readonly examples: string[] = [];

  constructor(readonly name: string) {}

  check(holds: boolean, describe: () => string): void {
    this.checks += 1;
    if (!holds) this.broken(describe());
  }

  broken(text: string): void {
    this.violations += 1;
    if (this.examples.length < EXAMPLES) this.examples.push(text);
  }
}
