// One interface for drawing, on a canvas or as SVG: the same function draws the page and the figure for a paper.

import { setAttributes } from "./dom.ts";
import { zoom } from "./present.ts";

export interface ShapeStyle {
  fill?: string;
  stroke?: string;
  width?: number;
  dash?: string;
  opacity?: number;
  radius?: number;
}

export interface TextStyle {
  fill: string;
  size?: number;
  weight?: number;
  anchor?: "start" | "middle" | "end";
  /** Degrees, clockwise. */
  angle?: number;
}

/** Colors of a grid, little-endian ABGR. */
export interface Pixels {
  width: number;
  height: number;
  data: Uint32Array;
}

export interface Renderer {
  rect(x: number, y: number, width: number, height: number, style: ShapeStyle): void;
  /** Draw a path in the notation of SVG. */
  path(data: string, style: ShapeStyle): void;
  /** Draw text, vertically centered at y. */
  text(x: number, y: number, text: string, style: TextStyle): void;
  /** Draw a grid of colors with sharp edges. */
  pixels(x: number, y: number, width: number, height: number, pixels: Pixels): void;
}

export class CanvasRenderer implements Renderer {
  private context: CanvasRenderingContext2D;

  constructor(
    canvas: HTMLCanvasElement,
    width: number,
    height: number,
    private font: string,
    ratio = (window.devicePixelRatio || 1) * zoom(),
  ) {
    const [pixelWidth, pixelHeight] = [Math.round(width * ratio), Math.round(height * ratio)];
    // Assigning a size clears and reallocates the canvas: only do it if it changed.
    if (canvas.width !== pixelWidth || canvas.height !== pixelHeight) {
      canvas.width = pixelWidth;
      canvas.height = pixelHeight;
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    }
    this.context = canvas.getContext("2d")!;
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.context.clearRect(0, 0, width, height);
  }

  rect(x: number, y: number, width: number, height: number, style: ShapeStyle): void {
    const path = new Path2D();
    if (style.radius) path.roundRect(x, y, width, height, style.radius);
    else path.rect(x, y, width, height);
    this.draw(path, style);
  }

  path(data: string, style: ShapeStyle): void {
    this.draw(new Path2D(data), style);
  }

  text(x: number, y: number, text: string, style: TextStyle): void {
    const { context } = this;
    context.save();
    context.translate(x, y);
    if (style.angle) context.rotate((style.angle * Math.PI) / 180);
    context.font = `${style.weight ?? 400} ${style.size ?? 13}px ${this.font}`;
    context.fillStyle = style.fill;
    context.textAlign = { start: "left", middle: "center", end: "right" }[style.anchor ?? "start"] as CanvasTextAlign;
    context.textBaseline = "middle";
    context.fillText(text, 0, 0);
    context.restore();
  }

  pixels(x: number, y: number, width: number, height: number, pixels: Pixels): void {
    this.context.imageSmoothingEnabled = false;
    this.context.drawImage(toCanvas(pixels), x, y, width, height);
  }

  image(image: HTMLCanvasElement, x: number, y: number, width: number, height: number): void {
    this.context.drawImage(image, x, y, width, height);
  }

  private draw(path: Path2D, style: ShapeStyle): void {
    const { context } = this;
    context.globalAlpha = style.opacity ?? 1;
    if (style.fill) {
      context.fillStyle = style.fill;
      context.fill(path);
    }
    if (style.stroke) {
      context.strokeStyle = style.stroke;
      context.lineWidth = style.width ?? 1;
      context.setLineDash(style.dash ? style.dash.split(" ").map(Number) : []);
      context.stroke(path);
    }
    context.globalAlpha = 1;
  }
}

const SVG = "http://www.w3.org/2000/svg";

export class SvgRenderer implements Renderer {
  readonly element = document.createElementNS(SVG, "svg");

  constructor(width: number, height: number, font: string, background?: string) {
    setAttributes(this.element, {
      xmlns: SVG,
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      "font-family": font,
    });
    if (background) this.rect(0, 0, width, height, { fill: background });
  }

  rect(x: number, y: number, width: number, height: number, style: ShapeStyle): void {
    this.add("rect", { x, y, width, height, rx: style.radius, ...svgStyle(style) });
  }

  path(data: string, style: ShapeStyle): void {
    this.add("path", { d: data, ...svgStyle(style) });
  }

  text(x: number, y: number, text: string, style: TextStyle): void {
    const element = this.add("text", {
      x,
      y,
      fill: style.fill,
      "font-size": style.size ?? 13,
      "font-weight": style.weight ?? 400,
      "text-anchor": style.anchor ?? "start",
      "dominant-baseline": "central",
      transform: style.angle ? `rotate(${style.angle} ${x} ${y})` : null,
    });
    element.textContent = text;
  }

  pixels(x: number, y: number, width: number, height: number, pixels: Pixels): void {
    this.add("image", {
      x,
      y,
      width,
      height,
      href: toCanvas(pixels).toDataURL("image/png"),
      preserveAspectRatio: "none",
      style: "image-rendering: pixelated",
    });
  }

  private add(tag: string, attributes: Record<string, string | number | null | undefined>): SVGElement {
    const element = document.createElementNS(SVG, tag);
    setAttributes(element, attributes);
    this.element.append(element);
    return element;
  }
}

function svgStyle(style: ShapeStyle): Record<string, string | number | null> {
  return {
    fill: style.fill ?? "none",
    stroke: style.stroke ?? null,
    "stroke-width": style.stroke ? (style.width ?? 1) : null,
    "stroke-dasharray": style.dash ?? null,
    opacity: style.opacity ?? null,
  };
}

function toCanvas(pixels: Pixels): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  canvas.width = pixels.width;
  canvas.height = pixels.height;
  const bytes = new Uint8ClampedArray(
    pixels.data.buffer as ArrayBuffer,
    pixels.data.byteOffset,
    pixels.data.byteLength,
  );
  canvas.getContext("2d")!.putImageData(new ImageData(bytes, pixels.width, pixels.height), 0, 0);
  return canvas;
}
