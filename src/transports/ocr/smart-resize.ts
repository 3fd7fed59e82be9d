/** How Qwen's vision models shrink or stretch a picture before they look at it; dots.ocr's boxes are in pixels of the result. */

export interface ImageSize {
  readonly width: number;
  readonly height: number;
}

/** Both sides are a multiple of it. */
const FACTOR = 28;
const MIN_AREA = 3_136;
const MAX_AREA = 11_289_600;
/** Of the longer side to the shorter; such pictures are refused. */
const MAX_RATIO = 200;

/** To the nearest whole number; from the middle to the even one, as Python does. */
function rounded(value: number): number {
  const below = Math.floor(value);
  const rest = value - below;
  if (rest === 0.5) return below % 2 === 0 ? below : below + 1;
  return rest < 0.5 ? below : below + 1;
}

function both({ width, height }: ImageSize, scale: (side: number) => number): ImageSize {
  return { width: scale(width), height: scale(height) };
}

/** null = the picture is too narrow to be looked at. */
export function smartResize(size: ImageSize): ImageSize | null {
  const { width, height } = size;
  if (!(width >= 1 && height >= 1)) return null;
  if (Math.max(width, height) / Math.min(width, height) > MAX_RATIO) return null;
  const nearest = both(size, (side) => Math.max(FACTOR, rounded(side / FACTOR) * FACTOR));
  const area = nearest.width * nearest.height;
  if (area > MAX_AREA) return shrunk(size, Math.sqrt((width * height) / MAX_AREA));
  if (area >= MIN_AREA) return nearest;
  const factor = Math.sqrt(MIN_AREA / (width * height));
  const larger = both(size, (side) => Math.ceil((side * factor) / FACTOR) * FACTOR);
  const grownArea = larger.width * larger.height;
  return grownArea > MAX_AREA ? shrunk(larger, Math.sqrt(grownArea / MAX_AREA)) : larger;
}

function shrunk(size: ImageSize, divisor: number): ImageSize {
  return both(size, (side) => Math.max(FACTOR, Math.floor(side / divisor / FACTOR) * FACTOR));
}
