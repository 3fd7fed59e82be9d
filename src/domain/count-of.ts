/** `1 line`, `2 lines`, `2 entries`: for texts that people read. */
export function countOf(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}
