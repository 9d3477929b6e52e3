// Curves between two points, in the notation of SVG: they leave and arrive straight.

type Point = [number, number];

/** From left to right. */
export function across([x0, y0]: Point, [x1, y1]: Point): string {
  const middle = (x0 + x1) / 2;
  return `M${x0},${y0}C${middle},${y0},${middle},${y1},${x1},${y1}`;
}

/** From top to bottom. */
export function down([x0, y0]: Point, [x1, y1]: Point): string {
  const middle = (y0 + y1) / 2;
  return `M${x0},${y0}C${x0},${middle},${x1},${middle},${x1},${y1}`;
}
