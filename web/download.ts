// Offer a file to the reader. Works offline, in a saved page and in the frame of a notebook.

import { h } from "./dom.ts";

export function download(name: string, blob: Blob): void {
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
