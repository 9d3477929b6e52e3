// `code` and *emphasis* in texts.

import { h } from "../dom.ts";

/** Return a text as nodes. */
export function inline(text: string): (Node | string)[] {
  return text.split(/(`[^`]+`|\*[^*\s][^*]*\*)/).map((part) => {
    if (part.length > 2 && part.startsWith("`")) return h("code", {}, part.slice(1, -1));
    if (part.length > 2 && part.startsWith("*")) return h("em", {}, part.slice(1, -1));
    return part;
  });
}
