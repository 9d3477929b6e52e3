// Requests to `regard.look.local`, which serves this page if the document is live. A saved page never asks.

import type { Blob8, Continuation, Hypothesis, LookDocument, TokenInfo } from "./document.ts";

export interface AblatedOutput {
  text?: string;
  delta?: number;
}

export class Live {
  readonly available: boolean;

  constructor(doc: LookDocument) {
    this.available = doc.live && location.protocol.startsWith("http");
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

  /** `head` is "group.layer.head". */
  ablate(head: string): Promise<AblatedOutput> {
    return this.ask("ablate", { head });
  }

  /** The page's address ends in its token and a slash; requests are relative to it. */
  private async ask<T>(name: string, parameters: Record<string, string | number>): Promise<T> {
    const url = new URL(name, location.href);
    for (const [key, value] of Object.entries(parameters)) url.searchParams.set(key, String(value));
    const response = await fetch(url);
    const answer = await response.json().catch(() => ({}));
    if (!response.ok) throw new Error(answer.error ?? `The server answered ${response.status}.`);
    return answer as T;
  }
}
