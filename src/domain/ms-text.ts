/** `5000 ms`: for texts that people read. Nobody needs parts of a millisecond, but of a limit below one. */
export function msText(lengthMs: number): string {
  return `${lengthMs > 0 && lengthMs < 1 ? Number(lengthMs.toPrecision(1)) : Math.round(lengthMs)} ms`;
}
