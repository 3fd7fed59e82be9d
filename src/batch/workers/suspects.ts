import { LineKillsWorkersError, MAX_DEATHS_IN_A_ROW } from "./restarts.js";

/** What the deaths of workers say about the lines in their hands. */

/** What is remembered of one line. */
export interface LineDeaths {
  /** Workers that died with it. */
  count: number;
  /** Of the newest ones in a row: those that had nothing else, while no other worker died. */
  alone: number;
  /** The number of the newest one among the deaths of all workers. */
  newest: number;
}

export const NO_DEATHS: LineDeaths = { count: 0, alone: 0, newest: 0 };

/** A line that so many workers died with gets the next one for itself: whether that dies tells whose fault it is. */
const DEATHS_OF_SUSPECT = 2;
/** A worker that crashes does so for what it does: with this one alone in its hands, so many are proof. */
const CRASHES_OF_GUILTY = 3;
/** One that is killed from outside may be killed for anything, a lack of memory that the line caused among it. */
const KILLS_OF_GUILTY = 4;
/** Where the batch would end otherwise. */
const LEAST_KILLS_OF_GUILTY = 3;
/** One after the other without a finished line between them: it is no line that workers die of. */
const MAX_GUILTY_IN_A_ROW = 2;

export interface Death {
  /** The end of a sentence. */
  readonly how: string;
  /** Somebody else ended it. */
  readonly fromOutside: boolean;
  /** Of this worker, without a finished line in between. */
  readonly deathsInRow: number;
}

export interface Suspects {
  /** Is to be run by a worker that has nothing else. */
  isSuspect(line: LineDeaths): boolean;
  /** A worker died with these. Answers the one that it died of, when that is certain. */
  died<Line extends { deaths: LineDeaths }>(lost: readonly Line[], death: Death): Line | undefined;
  /** false: so many in a row that it must be something else. */
  mayBlame(): boolean;
  /** A line was finished. */
  finished(): void;
}

export function createSuspects(): Suspects {
  let allDeaths = 0;
  let guiltyInRow = 0;
  return {
    isSuspect: ({ count }) => count >= DEATHS_OF_SUSPECT,
    died(lost, death) {
      allDeaths++;
      const isAlone = lost.length === 1;
      for (const line of lost) {
        const { count, alone, newest } = line.deaths;
        const inRow = newest === allDeaths - 1 ? alone + 1 : 1;
        line.deaths = { count: count + 1, alone: isAlone ? inRow : 0, newest: allDeaths };
      }
      const [line] = lost;
      return isAlone && line !== undefined && isGuilty(line.deaths, death) ? line : undefined;
    },
    mayBlame: () => ++guiltyInRow <= MAX_GUILTY_IN_A_ROW,
    finished() {
      guiltyInRow = 0;
    },
  };
}

function isGuilty({ count, alone }: LineDeaths, { fromOutside, deathsInRow }: Death): boolean {
  if (!fromOutside) return count >= CRASHES_OF_GUILTY;
  return alone >= KILLS_OF_GUILTY || (alone >= LEAST_KILLS_OF_GUILTY && deathsInRow >= MAX_DEATHS_IN_A_ROW);
}

export function guiltyError({ count }: LineDeaths, how: string): LineKillsWorkersError {
  return new LineKillsWorkersError(
    `${count} workers died while they had this line, the last one with nothing else (it ${how}). It is not run again; --retry-failed does.`,
  );
}
