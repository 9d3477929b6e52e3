// Requests to `regard.look.local`, which serves this page if the document is live. A saved page never asks.

import type { Blob8, Continuation, LookDocument } from "./document.ts";

export interface AblatedOutput {
  text: string;
  logprob?: number | null;
}

export class Live {
  readonly available: boolean;

  constructor(doc: LookDocument) {
    this.available = doc.live && location.protocol.startsWith("http");
  }

  map(group: string, layer: number, head: number): Promise<Blob8> {
    return this.ask("map", { group, layer, head });
  }

  continue(candidate: number): Promise<Continuation> {
    return this.ask("continue", { candidate });
  }

  ablate(group: string, layer: number, head: number): Promise<AblatedOutput> {
    return this.ask("ablate", { group, layer, head });
  }

  /** The page's address ends in its token; requests are relative to it. */
  private async ask<T>(name: string, parameters: Record<string, string | number>): Promise<T> {
    const url = new URL(name, location.href);
    for (const [key, value] of Object.entries(parameters)) url.searchParams.set(key, String(value));
    const response = await fetch(url);
    if (!response.ok) throw new Error(`The server answered ${response.status} to ${name}.`);
    return (await response.json()) as T;
  }
}
