// The complete maps of heads: those of the document, and on a live page the others as well.

import { type Decoded, type Group, Loader, decodeBlob } from "../document.ts";
import type { Context } from "./common.ts";

export interface Maps {
  /** The codes (rows, columns) of a head; undefined while they are on the way, and null if this file has none. */
  read(group: Group, layer: number, head: number): Decoded | null | undefined;
  /** Why a map could not be loaded. */
  problem(group: Group, layer: number, head: number): string | null;
}

/** Of the maps that a live page asks for, `limit` stay in memory. */
export function makeMaps({ store, blobs, live }: Context, limit = 16): Maps {
  const asked = new Loader<Decoded>(
    async (key) => {
      const [group, layer, head] = key.split("|");
      return decodeBlob(await live.map(group, Number(layer), Number(head)));
    },
    () => store.notify(),
    limit,
  );
  const key = (group: Group, layer: number, head: number) => `${group.name}|${layer}|${head}`;
  return {
    read(group, layer, head) {
      const name = group.maps[`${layer}.${head}`];
      if (name) return blobs.read(name);
      return live.available ? asked.read(key(group, layer, head)) : null;
    },
    problem: (group, layer, head) => asked.problem(key(group, layer, head)),
  };
}
