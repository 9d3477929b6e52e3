// The document of src/regard/look/film.py, whose docstring is the reference, and what the page computes from it.

import { type Blob8, type Decoded, type GroupName, type Token, decodeBlob } from "../document.ts";

/** Text and word of a token; special tokens have no word. */
export type TokenPair = [string, number | null];

export interface Curve {
  steps: number[];
  values: (number | null)[];
}

export interface RunCurves {
  name: string;
  task: string;
  metric: string;
  steps: number;
  is_finished: boolean;
  training: Record<string, Curve>;
  validation: Record<string, Curve>;
}

export interface Probe {
  text: string;
  reference: string;
  reference_length: number;
  tokens: TokenPair[];
}

export interface Shot {
  output: string;
  length: number;
  logprob: number | null;
  reference_logprob: number | null;
  tokens: TokenPair[];
  shape: number[];
}

export interface Frame {
  step: number;
  loss: number | null;
  probes: Shot[];
  maps: Blob8;
}

export interface Film {
  attention: { name: GroupName | ""; layers: number; heads: number };
  default_head: [number, number];
  probes: Probe[];
  frames: Frame[];
}

export interface FilmDocument {
  format: string;
  live: boolean;
  text: string;
  version: string;
  runs: RunCurves[];
  film: Film | null;
  notes: string[];
}

/** Whether a document is the page of a run. */
export function isFilm(doc: { format: string }): doc is FilmDocument {
  return doc.format.startsWith("regard-film/");
}

/** The last frame at or before a step; -1 if there is none. */
export function findFrame(frames: Frame[], step: number): number {
  return frames.filter((frame) => frame.step <= step).length - 1;
}

/** The probability of a token on average (geometric mean), from the ln p of all of them; null if it is unknown. */
export function perToken(logprob: number | null, length: number): number | null {
  return logprob === null || length === 0 ? null : Math.exp(logprob / length);
}

/** The place of a head's map among the codes of a frame; null if the frame does not have it. */
export function locateMap(
  film: Film,
  frame: Frame,
  probe: number,
  layer: number,
  head: number,
): { start: number; rows: number; columns: number } | null {
  const size = (shape: number[]) => shape.reduce((product, count) => product * count, 1);
  const before = frame.probes.slice(0, probe).reduce((sum, shot) => sum + size(shot.shape), 0);
  const [layers, heads, rows, columns] = frame.probes[probe].shape;
  const kept = layer - (film.attention.layers - layers); // a frame keeps the last layers
  if (kept < 0 || head >= heads || rows === 0) return null;
  return { start: before + (kept * heads + head) * rows * columns, rows, columns };
}

/** The tokens of the rows and columns of a map. */
export function mapTokens(film: Film, frame: Frame, probe: number): { rows: Token[]; columns: Token[] } {
  const [rows, columns] = {
    "decoder.cross": [frame.probes[probe].tokens, film.probes[probe].tokens],
    "decoder.self": [frame.probes[probe].tokens, frame.probes[probe].tokens],
    "encoder.self": [film.probes[probe].tokens, film.probes[probe].tokens],
    "": [[], []] as [TokenPair[], TokenPair[]],
  }[film.attention.name];
  const describe = ([text, word]: TokenPair): Token => ({
    id: 0,
    text,
    word,
    role: word === null ? "special" : "text",
  });
  return { rows: rows.map(describe), columns: columns.map(describe) };
}

/** The codes of a frame, decoded once. */
const decoded = new WeakMap<Blob8, Promise<Decoded>>();
export function decodeMaps(frame: Frame): Promise<Decoded> {
  if (!decoded.has(frame.maps)) decoded.set(frame.maps, decodeBlob(frame.maps));
  return decoded.get(frame.maps)!;
}
