/** Lines of an IN file, and the ids that belong in OUT. */

export const idOf = (number: number): string => `q${number}`;

export const idsOf = (count: number, from = 1): string[] =>
  Array.from({ length: count }, (_, index) => idOf(from + index));

export const questionLine = (number: number, more: Record<string, unknown> = {}): string =>
  `${JSON.stringify({ id: idOf(number), prompt: `question ${number}`, ...more })}\n`;

export const questionLines = (count: number, more: Record<string, unknown> = {}): string =>
  Array.from({ length: count }, (_, index) => questionLine(index + 1, more)).join("");
