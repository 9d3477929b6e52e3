// The only place that makes SVG elements.

import { setAttributes } from "../dom.ts";

/** Make an SVG element: svg("circle", { cx: 1, cy: 2, r: 3 }). */
export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Parameters<typeof setAttributes>[1] = {},
  ...children: (Node | string)[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  setAttributes(element, attributes);
  element.append(...children);
  return element;
}
