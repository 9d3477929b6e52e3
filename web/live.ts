// Requests to `regard.look.local`, which serves this page if the document is live. A saved page never asks.

import type { Candidate } from "./blame.ts";
import type { AblatedOutput, Blob8, Continuation, Hypothesis, LookDocument, TokenInfo } from "./document.ts";

/** What a reader entered; models by their place in the session's list. */
export interface Entry {
  text: string;
  model: number;
  against: string;
  against_model: number;
}

export class Live {
  readonly available: boolean;

  /** `isAgainst`: ask for the second document of a comparison. */
  constructor(
    private doc: LookDocument,
    private isAgainst = false,
  ) {
    this.available = doc.live && location.protocol.startsWith("http");
  }

  /** Look into another text; a body may be longer than a URL. */
  async look(entry: Entry): Promise<LookDocument> {
    const body = new URLSearchParams(Object.entries(entry).map(([key, value]) => [key, String(value)]));
    return (await this.send<{ document: LookDocument }>(new URL("look", location.href), { method: "POST", body }))
      .document;
  }

  /** Training pairs that may have taught a word of the output. */
  blame(word: string): Promise<{ candidates: Candidate[] }> {
    return this.ask("blame", { word });
  }

  map(group: string, layer: number, head: number): Promise<Blob8> {
    return this.ask("map", { group, layer, head });
  }

  /** The exact weights of one row; a map has 8-bit codes. */
  async row(group: string, layer: number, head: number, row: number): Promise<number[]> {
    return (await this.ask<{ weights: number[] }>("row", { group, layer, head, row })).weights;
  }

  continue(candidate: number): Promise<{ continuation: Continuation; vocabulary: Record<string, TokenInfo> }> {
    return this.ask("continue", { candidate });
  }

  hypothesis(candidate: number): Promise<{ hypothesis: Hypothesis; blobs: Record<string, Blob8> }> {
    return this.ask("hypothesis", { candidate });
  }

  logits(position: number): Promise<Blob8> {
    return this.ask("logits", { position });
  }

  /** All heads are off; each is "group.layer.head". */
  ablate(heads: string[]): Promise<AblatedOutput> {
    return this.ask("ablate", { head: heads });
  }

  /** The page's address ends in its token and a slash; requests are relative to it. */
  private async ask<T>(name: string, parameters: Record<string, string | number | string[]>): Promise<T> {
    const url = new URL(name, location.href);
    for (const [key, value] of Object.entries(parameters))
      [value].flat().forEach((item) => url.searchParams.append(key, String(item)));
    if (this.doc.session) url.searchParams.set("session", String(this.doc.session.number));
    if (this.isAgainst) url.searchParams.set("side", "against");
    return this.send<T>(url);
  }

  private async send<T>(url: URL, options?: RequestInit): Promise<T> {
    const response = await fetch(url, options).catch(() => {
      throw new Error("The server does not respond. Is the command still running?");
    });
    const answer = await response.json().catch(() => ({}));
    if (!response.ok) throw new Error(answer.error ?? `The server answered ${response.status}.`);
    return answer as T;
  }
}
