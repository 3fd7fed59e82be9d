/** Edits (insert, delete, replace, swap) that turn one word into the other. */
function distance(from: string, to: string): number {
  const width = to.length + 1;
  const cost = new Array<number>((from.length + 1) * width).fill(0);
  const at = (row: number, column: number): number => cost[row * width + column] ?? 0;
  for (let column = 0; column < width; column++) cost[column] = column;
  for (let row = 1; row <= from.length; row++) {
    cost[row * width] = row;
    for (let column = 1; column < width; column++) {
      const replaced = at(row - 1, column - 1) + (from[row - 1] === to[column - 1] ? 0 : 1);
      let best = Math.min(replaced, at(row - 1, column) + 1, at(row, column - 1) + 1);
      const swapped = row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      if (swapped) best = Math.min(best, at(row - 2, column - 2) + 1);
      cost[row * width + column] = best;
    }
  }
  return at(from.length, to.length);
}

const MAX_COMPARED = 80;

/** The known word that was most likely meant; undefined when none is near. Case is ignored. */
export function didYouMean(word: string, known: Iterable<string>): string | undefined {
  if (word.length > MAX_COMPARED) return undefined;
  let best: string | undefined;
  let bestDistance = Math.max(1, Math.floor(word.length / 3)) + 1;
  for (const candidate of known) {
    const edits = distance(word.toLowerCase(), candidate.toLowerCase());
    if (edits >= bestDistance) continue;
    best = candidate;
    bestDistance = edits;
  }
  return best;
}
