// Translate a file: it comes back with its structure.

import { fill, h } from "../dom.ts";
import { report } from "../report.ts";
import { request } from "./api.ts";

const ENDINGS = ".txt,.md,.html,.htm,.xhtml,.srt,.vtt";

/** Return the row with the button; `options` gives the model and the target language. */
export function makeFileRow(options: () => Record<string, string>): HTMLElement {
  const status = h("p", { class: "small", role: "status" }, "Text, HTML and subtitles keep their structure.");
  const input = h("input", {
    type: "file",
    accept: ENDINGS,
    class: "hidden-input",
    id: "file",
    onchange: () => {
      const file = input.files?.[0];
      if (file) void translate(file);
      input.value = "";
    },
  });

  async function translate(file: File): Promise<void> {
    report(status, `Translating ${file.name} …`);
    const form = new FormData();
    form.append("file", file);
    try {
      const response = await request(`translate_file?${new URLSearchParams(options())}`, form);
      const name = readName(response.headers.get("Content-Disposition") ?? "") || file.name;
      const url = URL.createObjectURL(await response.blob());
      const link = h("a", { href: url, download: name }, `Download ${name}`);
      fill(status, link);
      link.click();
    } catch (error) {
      report(status, `${file.name} was not translated. ${(error as Error).message}`, true);
    }
  }

  return h(
    "div",
    { class: "row file" },
    h("label", { class: "button", for: "file" }, input, "Translate a file"),
    status,
  );
}

function readName(disposition: string): string {
  const name = /filename\*=UTF-8''([^;]+)/.exec(disposition)?.[1];
  return name ? decodeURIComponent(name) : "";
}
