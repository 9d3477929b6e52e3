// Colors, read from the style sheet so that light and dark are defined in one place.

export interface Theme {
  page: string;
  ink: string;
  muted: string;
  rule: string;
  /** What a reader selected or points at; nothing else has this color. */
  accent: string;
  /** Weights, probabilities and what speaks for an output. */
  hue: string;
  /** What speaks against an output, and numbers below zero. */
  minus: string;
  /** What covers a picture: it must be seen on black and on white. */
  tint: string;
  font: string;
  /** Color of each code 0 to 255, as #rrggbb; code 0 is the page's color. */
  ramp: string[];
  /** The same for ImageData: little-endian ABGR. */
  pixels: Uint32Array;
}

type Rgb = [number, number, number];

// One hue. Light: white to dark blue. Dark: the page's near-black to pale blue. Lightness is monotone in both.
const STOPS: Record<"light" | "dark", [number, Rgb][]> = {
  light: [
    [0, [255, 255, 255]],
    [90, [198, 219, 239]],
    [150, [107, 174, 214]],
    [205, [33, 113, 181]],
    [255, [8, 38, 92]],
  ],
  dark: [
    [0, [20, 22, 27]],
    [90, [24, 58, 98]],
    [150, [33, 105, 172]],
    [205, [98, 170, 226]],
    [255, [226, 241, 255]],
  ],
};

let cached: { key: string; theme: Theme } | null = null;

/** Return the colors of the current scheme. */
export function readTheme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const read = (name: string) => style.getPropertyValue(name).trim();
  const key = read("--scheme");
  if (cached?.key === key) return cached.theme;
  const colors = makeRamp(STOPS[key === "dark" ? "dark" : "light"]);
  const theme: Theme = {
    page: read("--page"),
    ink: read("--ink"),
    muted: read("--muted"),
    rule: read("--rule"),
    accent: read("--accent"),
    hue: read("--hue"),
    minus: read("--minus"),
    tint: read("--tint"),
    font: read("--font"),
    ramp: colors.map(toHex),
    pixels: Uint32Array.from(colors, ([r, g, b]) => (0xff000000 | (b << 16) | (g << 8) | r) >>> 0),
  };
  cached = { key, theme };
  return theme;
}

/** 256 distinct colors: a reader of pixels can recover every code. */
function makeRamp(stops: [number, Rgb][]): Rgb[] {
  const colors: Rgb[] = [];
  const used = new Set<string>();
  for (let code = 0; code < 256; code++) {
    const next = stops.findIndex(([at]) => at >= code);
    const [startAt, start] = stops[Math.max(0, next - 1)];
    const [endAt, end] = stops[next];
    const share = endAt === startAt ? 1 : (code - startAt) / (endAt - startAt);
    const color = start.map((value, i) => Math.round(value + share * (end[i] - value))) as Rgb;
    // Neighbors can round to the same color: one step of blue, which nobody sees, keeps them apart.
    while (used.has(color.join())) color[2] += color[2] < 128 ? 1 : -1;
    used.add(color.join());
    colors.push(color);
  }
  return colors;
}

function toHex([r, g, b]: Rgb): string {
  return "#" + [r, g, b].map((value) => value.toString(16).padStart(2, "0")).join("");
}

/** A color between two colors #rrggbb, for ImageData. */
export function mixPixel(from: string, to: string, share: number): number {
  const read = (color: string, at: number) => parseInt(color.slice(at, at + 2), 16);
  const [r, g, b] = [1, 3, 5].map((at) => Math.round(read(from, at) + share * (read(to, at) - read(from, at))));
  return (0xff000000 | (b << 16) | (g << 8) | r) >>> 0;
}

/** Black or white text, whichever reads better on a color #rrggbb. */
export function inkOn(color: string): string {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const value = parseInt(color.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.18 ? "#000000" : "#ffffff";
}
