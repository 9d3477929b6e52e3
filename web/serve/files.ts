// Translate a file: it comes back with its structure.

import { fill, h } from "../dom.ts";
import { report } from "../report.ts";
import { request } from "./api.ts";

const ENDINGS =
  ".txt,.md,.markdown,.html,.htm,.xhtml,.srt,.vtt,.docx,.pptx,.odt,.xlf,.xliff,.tmx,.po,.pot,.json,.yaml,.yml";

interface Report {
  segments: number;
  attention: { location: string; translation: string; reasons: string[] }[];
}

interface Answer {
  translatedFileUrl: string;
  report: Report;
}

/** Return the row with the button; `options` gives the model and the target language. */
export function makeFileRow(options: () => Record<string, string>): HTMLElement {
  const status = h(
    "p",
    { class: "small", role: "status" },
    "Documents, pages, subtitles and string tables keep everything but their text.",
  );
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
      const { translatedFileUrl: url, report: checks } = (await response.json()) as Answer;
      const path = url.slice(url.indexOf("download_file/")); // a proxy may change everything before it
      const name = decodeURIComponent(path.slice(path.lastIndexOf("/") + 1));
      const link = h("a", { href: path, download: name }, `Download ${name}`);
      fill(status, link, describe(checks));
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

/** Return the segments that the reader should check; empty if there are none. */
function describe(report: Report): HTMLElement | string {
  if (!report.attention.length) return "";
  return h(
    "details",
    {},
    h("summary", {}, `${report.attention.length} of ${report.segments} segments should be checked`),
    h(
      "ul",
      {},
      ...report.attention.map((segment) =>
        h("li", {}, `${segment.location}: ${segment.reasons.join("; ")} `, h("q", {}, segment.translation)),
      ),
    ),
  );
}
