// Copy the address of what the page shows, and say where that address works.

import { fill, h } from "./dom.ts";

/** What to copy for a fragment such as "#heads?head=2", and what to know about it. */
export function describeAddress(href: string, fragment: string): { text: string; note: string } {
  const { protocol, hostname } = new URL(href);
  const text = href.replace(/#.*/s, "") + fragment;
  if (protocol === "file:")
    return { text, note: `For this computer. To share it, send the file and ${fragment}, which goes after its name.` };
  if (!protocol.startsWith("http"))
    return { text: fragment, note: "A frame has no address: add this to a saved page's." };
  if (["127.0.0.1", "localhost", "[::1]"].includes(hostname))
    return { text, note: "For this computer, while the page is served. To share it, save the page (--save)." };
  return { text, note: "" };
}

async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // A frame may have no right to the clipboard; the old command then still copies a selection.
    const area = document.body.appendChild(h("textarea", { readonly: true }, text));
    area.select();
    const isDone = document.execCommand("copy");
    area.remove();
    return isDone;
  }
}

/** A button that copies the address, with a status line next to it that `clear` empties. */
export function makeCopyLink(link: () => string): { elements: HTMLElement[]; clear: () => void } {
  const status = h("span", { class: "small", role: "status" });
  const button = h("button", { type: "button", onclick: () => void run() }, "Copy link");
  async function run(): Promise<void> {
    const { text, note } = describeAddress(location.href, link());
    if (await copy(text)) fill(status, ["Copied", note].filter(Boolean).join(". "));
    else {
      const field = h("input", { readonly: true, "aria-label": "Link", value: text });
      fill(status, "Copy it from here: ", field);
      field.select();
    }
    button.focus();
  }
  return { elements: [button, status], clear: () => status.hasChildNodes() && fill(status) };
}
