// Texts on a canvas: how wide they are, and shorter ones that fit.

let measuring: CanvasRenderingContext2D | null = null;

/** Width of a text in pixels. */
export function textWidth(text: string, size: number, font: string): number {
  measuring ??= document.createElement("canvas").getContext("2d")!;
  measuring.font = `${size}px ${font}`;
  return measuring.measureText(text).width;
}

/** Shorten a text until it fits. */
export function fitText(text: string, size: number, font: string, width: number): string {
  if (textWidth(text, size, font) <= width) return text;
  const characters = Array.from(text);
  while (characters.length > 1 && textWidth(characters.join("") + "…", size, font) > width) characters.pop();
  return characters.join("") + "…";
}
