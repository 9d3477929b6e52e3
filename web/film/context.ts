// What the parts of a film's page share: the document, what the reader chose, and how to change it.

import type { Film, FilmDocument } from "./document.ts";
import type { FilmState } from "./link.ts";

export interface FilmContext {
  doc: FilmDocument;
  state: FilmState;
  set(patch: Partial<FilmState>): void;
}

export interface Part {
  element: HTMLElement;
  update(film: Film): void;
}
