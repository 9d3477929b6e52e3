// The site of the lectures: the index, or one lecture as a column of stations.

import { h } from "../dom.ts";
import { drawBlock, drawQuiz } from "./blocks.ts";
import type { Lecture, Overview, Site, Station } from "./document.ts";
import { inline } from "./inline.ts";
import { getAnswer, setAnswer } from "./memory.ts";
import style from "./style.css";

const site: Site = JSON.parse(document.getElementById("document")!.textContent!);
document.head.append(h("style", {}, style));
document.getElementById("app")!.append(site.lecture ? drawLecture(site.lecture) : drawIndex());

// P enlarges everything for a projector, as in `regard look`.
addEventListener("keydown", (event) => {
  const target = event.target as HTMLElement;
  if (event.ctrlKey || event.metaKey || event.altKey || target.matches("input, select, textarea")) return;
  if (event.key.toLowerCase() === "p") keepPlace(() => document.documentElement.classList.toggle("present"));
});

/** Change the layout without moving the station at the top of the window. */
function keepPlace(change: () => void): void {
  const stations = [...document.querySelectorAll<HTMLElement>("section[id]")];
  const current = stations.filter((station) => station.getBoundingClientRect().top < innerHeight / 2).at(-1);
  change();
  if (current && scrollY > 0) current.scrollIntoView();
}

function drawIndex(): HTMLElement {
  return h(
    "main",
    {},
    h("h1", {}, "Five lectures on Transformers"),
    h(
      "p",
      {},
      "Predict, see, change, judge: each station is one claim of a lecture, with numbers that Regard computed.",
    ),
    ...site.lectures.map((lecture) =>
      h(
        "section",
        { class: "card" },
        h("h2", {}, h("a", { href: `lecture-${lecture.number}.html` }, `${lecture.number}. ${lecture.title}`)),
        h("p", {}, ...inline(lecture.introduction)),
        drawProgress(lecture),
      ),
    ),
    drawFooter(),
  );
}

function drawLecture(lecture: Lecture): HTMLElement {
  const progress = h("div", { class: "small", role: "status" });
  const terms = h("p", { class: "terms small" });
  const update = () => {
    progress.replaceChildren(drawProgress(lecture));
    terms.replaceChildren(...drawTerms(lecture));
  };
  update();
  const links = site.lectures.map(({ number, title }) =>
    h(
      "a",
      { href: `lecture-${number}.html`, title, "aria-current": number === lecture.number ? "page" : null },
      String(number),
    ),
  );
  const contents = lecture.stations.map(({ name, title }) => h("li", {}, h("a", { href: `#${name}` }, title)));
  return h(
    "div",
    {},
    h(
      "header",
      {},
      h("nav", { "aria-label": "Lectures" }, h("a", { href: "index.html" }, "All lectures"), ...links),
      progress,
    ),
    h(
      "main",
      {},
      h("h1", {}, `${lecture.number}. ${lecture.title}`),
      h("p", {}, ...inline(lecture.introduction)),
      h("nav", { class: "contents", "aria-label": "Stations" }, h("ol", {}, ...contents)),
      terms,
      ...lecture.stations.map((station, i) => drawStation(station, i + 1, update)),
      drawFooter(),
    ),
  );
}

function drawStation(station: Station, number: number, update: () => void): HTMLElement {
  const answer = (option: number) => {
    setAnswer(station.name, option);
    update();
  };
  const { judgment, text } = station.verdict;
  return h(
    "section",
    { id: station.name, class: "station" },
    h("h2", {}, `${number}. ${station.title}`),
    h("p", { class: "claim" }, ...inline(station.claim)),
    h("h3", {}, "Predict"),
    drawQuiz(station.predict, getAnswer(station.name), answer),
    h("h3", {}, "See"),
    ...station.blocks.map(drawBlock),
    h("h3", {}, "Change"),
    h("p", {}, ...inline(station.change)),
    h(
      "div",
      { class: "verdict" },
      h("strong", {}, `${judgment[0]!.toUpperCase()}${judgment.slice(1)}: `),
      ...inline(text),
    ),
  );
}

function drawProgress(lecture: Lecture | Overview): HTMLElement {
  const done = lecture.stations.filter(({ name }) => getAnswer(name) !== undefined).length;
  const label = `${done} of ${lecture.stations.length} predictions made`;
  return h(
    "label",
    { class: "progress small" },
    label,
    h("progress", { max: lecture.stations.length || 1, value: done, "aria-label": label }),
  );
}

/** The check list: a term is ticked when a prediction was made at one of its stations. */
function drawTerms(lecture: Lecture): (HTMLElement | string)[] {
  const stations = lecture.stations.filter(({ terms }) => terms.length);
  const terms = [...new Set(stations.flatMap((station) => station.terms))];
  const isDone = (term: string) =>
    stations.some((station) => station.terms.includes(term) && getAnswer(station.name) !== undefined);
  if (!terms.length) return [];
  return ["Check list: ", ...terms.map((term) => h("span", {}, isDone(term) ? `☑ ${term}` : `☐ ${term}`))];
}

function drawFooter(): HTMLElement {
  return h(
    "footer",
    { class: "small" },
    `Made with Regard ${site.version}: `,
    h("code", {}, "regard lectures"),
    ". P: presentation mode.",
  );
}
