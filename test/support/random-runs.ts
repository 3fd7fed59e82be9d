/** How many random sequences a test plays: few in `npm test`, as many as `PGW_TEST_RUNS` says in a long run. */
export function randomRuns(short: number): number {
  const runs = Number(process.env.PGW_TEST_RUNS);
  return Number.isInteger(runs) && runs > 0 ? runs : short;
}
