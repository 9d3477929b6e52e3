// The address of what the page of a run shows: #film?step=33&example=2&layer=1&head=3. Numbers count from 1.

import { listMetrics } from "./curves.ts";
import { type FilmDocument, findFrame } from "./document.ts";

export interface FilmState {
  /** Number of the frame. */
  frame: number;
  probe: number;
  layer: number;
  head: number;
  metric: string;
  isLog: boolean;
}

/** The state that a page opens with: the last frame. */
export function openingState({ film }: FilmDocument): FilmState {
  const [layer, head] = film?.default_head ?? [0, 0];
  return { frame: (film?.frames.length ?? 1) - 1, probe: 0, layer, head, metric: "loss", isLog: film !== null };
}

export function writeLink(state: FilmState, opening: FilmState, doc: FilmDocument): string {
  const fields: [string, string | number, boolean][] = [
    ["step", doc.film?.frames[state.frame]?.step ?? 0, state.frame !== opening.frame],
    ["example", state.probe + 1, state.probe !== opening.probe],
    ["layer", state.layer + 1, state.layer !== opening.layer || state.head !== opening.head],
    ["head", state.head + 1, state.layer !== opening.layer || state.head !== opening.head],
    ["curve", encodeURIComponent(state.metric), state.metric !== opening.metric],
    ["axis", state.isLog ? "log" : "linear", state.isLog !== opening.isLog],
  ];
  const query = fields.filter(([, , differs]) => differs).map(([name, value]) => `${name}=${value}`);
  return `#film${query.length ? `?${query.join("&")}` : ""}`;
}

/** The state of an address: the opening, with what it names and the document has. */
export function readLink(fragment: string, doc: FilmDocument): FilmState {
  const state = openingState(doc);
  const { film } = doc;
  const values = new URLSearchParams(fragment.split("?")[1] ?? "");
  const count = (name: string, limit: number) => {
    const value = Number(values.get(name)) - 1;
    return values.has(name) && Number.isInteger(value) && value >= 0 && value < limit ? value : null;
  };
  if (film) {
    const frame = findFrame(film.frames, Number(values.get("step")));
    if (/^\d+$/.test(values.get("step") ?? "") && frame >= 0) state.frame = frame;
    state.probe = count("example", film.probes.length) ?? state.probe;
    const [layer, head] = [count("layer", film.attention.layers), count("head", film.attention.heads)];
    if (layer !== null && head !== null) Object.assign(state, { layer, head });
  }
  const metric = values.get("curve");
  if (metric && listMetrics(doc).includes(metric)) state.metric = metric;
  if (["log", "linear"].includes(values.get("axis") ?? "")) state.isLog = values.get("axis") === "log";
  return state;
}
