/** As servers send them; the first two can be mended: corners in the wrong order, and a box that stands out of its page. */
export const BROKEN_BOXES: readonly unknown[] = [
  [700, 110, 90, 70],
  [-50, 700, 400, 5_000],
  [90, 70, 90, 110],
  [5_000, 5_000, 6_000, 6_000],
  [null, 70, 700, 110],
  ["left", "top", "right", "bottom"],
  [90, 70, 700],
  null,
  "90 70 700 110",
];
