// The address of what the page shows: #heads?attention=decoder.cross&layer=2&head=3&pin=4,2. Numbers count from 1.

import type { GroupName, LookDocument } from "./document.ts";
import type { State } from "./state.ts";

type Field = {
  name: string;
  write(state: State): string;
  /** What a text of the address means; null if it means nothing for this document. */
  read(text: string, doc: LookDocument): Partial<State> | null;
};

const count = (text: string): number | null => (/^[1-9]\d{0,6}$/.test(text) ? Number(text) - 1 : null);
const flag = (
  key: "words" | "specials" | "numbers" | "stretched" | "meanOfHeads" | "alignedTokens" | "present",
  name: string,
) => ({
  name,
  write: (state: State) => (state[key] ? "1" : "0"),
  read: (text: string) => (text === "1" || text === "0" ? { [key]: text === "1" } : null),
});
const option = (key: "drawing" | "alignment", name: string, values: string[]): Field => ({
  name,
  write: (state) => state[key],
  read: (text) => (values.includes(text) ? ({ [key]: text } as Partial<State>) : null),
});
const number = (key: "layer" | "head" | "hypothesis" | "step" | "merge", name: string): Field => ({
  name,
  write: (state) => String(state[key] + 1),
  read: (text) => (count(text) === null ? null : { [key]: count(text)! }),
});

const hasGroup = (doc: LookDocument, name: string) => doc.attention.some((group) => group.name === name);
const HEAD: Field[] = [
  {
    name: "attention",
    write: (state) => state.group,
    read: (text, doc) => (hasGroup(doc, text) ? { group: text as GroupName } : null),
  },
  number("layer", "layer"),
  number("head", "head"),
];
const PIN: Field = {
  name: "pin",
  write: ({ locked }) => (locked ? [locked.row, locked.column].map((at) => (at === null ? "" : at + 1)).join() : ""),
  read: (text) => {
    const [row, column] = text.split(",").map(count);
    return row === null || row === undefined ? null : { locked: { row, column: column ?? null } };
  },
};
const PICTURE: Field[] = [
  ...HEAD,
  flag("meanOfHeads", "mean"),
  {
    name: "from",
    write: ({ query }) => (query === null ? "" : query === "mean" ? "all" : String(query + 1)),
    read: (text) => (text === "all" ? { query: "mean" } : count(text) === null ? null : { query: count(text) }),
  },
];

/** Heads that are switched off: "decoder.cross.2.1". A saved page can switch off one. */
const OFF: Field = {
  name: "off",
  write: ({ headsOff }) =>
    headsOff.map((key) => key.replace(/(\d+)\.(\d+)$/, (_, layer, head) => `${+layer + 1}.${+head + 1}`)).join(),
  read: (text, doc) => {
    const heads = text.split(",").flatMap((name) => {
      const parts = name.split(".");
      const [layer, head] = parts.slice(2).map(count);
      const group = doc.attention.find((item) => item.name === parts.slice(0, 2).join("."));
      const exists = group && layer !== null && head !== null && layer < group.layers && head < group.heads;
      return exists ? [`${group.name}.${layer}.${head}`] : [];
    });
    return heads.length ? { headsOff: [...new Set(heads)].slice(0, doc.live ? undefined : 1) } : null;
  },
};
/** Views that had another name in earlier versions. */
const RENAMED: Record<string, string> = { ablation: "break" };

/** What the address of a view holds in addition to its name. */
const FIELDS: Record<string, Field[]> = {
  story: [
    {
      name: "step",
      write: ({ beat }) => (beat === null ? "" : String(beat + 1)),
      read: (text) => (count(text) === null ? null : { beat: count(text) }),
    },
  ],
  image: PICTURE,
  spectrogram: PICTURE,
  heads: [
    ...HEAD,
    option("drawing", "drawing", ["heatmap", "lines"]),
    flag("words", "words"),
    flag("specials", "special"),
    flag("numbers", "numbers"),
    flag("stretched", "stretched"),
    PIN,
  ],
  compare: [
    ...HEAD,
    {
      name: "against",
      write: ({ againstHead }) => (againstHead ? againstHead.map((at) => at + 1).join(".") : ""),
      read: (text) => {
        const [layer, head] = text.split(".").map(count);
        return layer === null || head === null || head === undefined ? null : { againstHead: [layer, head] };
      },
    },
    {
      name: "position",
      write: ({ compared }) => (compared === null ? "" : String(compared + 1)),
      read: (text) => (count(text) === null ? null : { compared: count(text) }),
    },
    flag("words", "words"),
    PIN,
  ],
  search: [
    {
      name: "hypothesis",
      write: ({ candidate }) => (candidate === null ? "" : String(candidate)),
      read: (text, doc) =>
        /^\d{1,7}$/.test(text) && Number(text) < (doc.search?.step.length ?? 0) ? { candidate: Number(text) } : null,
    },
    {
      name: "steps",
      write: (state) => (state.unfolded ? "all" : ""),
      read: (text) => (text === "all" ? { unfolded: true } : null),
    },
  ],
  alignment: [
    number("hypothesis", "hypothesis"),
    option("alignment", "drawing", ["ribbons", "matrix"]),
    flag("alignedTokens", "tokens"),
    {
      name: "heads",
      write: ({ alignedHeads }) =>
        alignedHeads
          .map((head) =>
            head
              .split(".")
              .map((at) => Number(at) + 1)
              .join("."),
          )
          .join(),
      read: (text) => {
        const heads = text.split(",").map((head) => head.split(".").map(count));
        return heads.every((head) => head.length === 2 && !head.includes(null))
          ? { alignedHeads: heads.map((head) => head.join(".")) }
          : null;
      },
    },
    PIN,
  ],
  attribution: [
    {
      name: "method",
      write: (state) => state.method,
      read: (text, doc) => (Object.hasOwn(doc.attribution?.methods ?? {}, text) ? { method: text } : null),
    },
    PIN,
  ],
  break: [OFF, { name: "head", write: () => "", read: OFF.read }],
  sampling: [number("step", "step")],
  masks: [
    {
      name: "attention",
      write: (state) => state.mask,
      read: (text, doc) =>
        doc.masks.some((mask) => mask.group === text) ? { mask: text as GroupName, hiddenTerms: [] } : null,
    },
    PIN,
  ],
  positions: [
    {
      name: "stack",
      write: (state) => state.stack,
      read: (text, doc) => (doc.positions.some((item) => item.stack === text) ? { stack: text } : null),
    },
  ],
  merges: [number("merge", "merge")],
};

/** What the address of every view can hold. */
const COMMON: Field[] = [flag("present", "present")];

/** The fragment of the address of a state: what differs from the opening is named, and a head always as a whole. */
export function writeLink(state: State, opening: State): string {
  const differs = (field: Field) => field.write(state) !== field.write(opening);
  const fields = [...(FIELDS[state.view] ?? []), ...COMMON].filter((field) =>
    HEAD.includes(field) ? HEAD.some(differs) : differs(field),
  );
  const query = fields.map((field) => `${field.name}=${encodeURIComponent(field.write(state)).replaceAll("%2C", ",")}`);
  return `#${state.view}${query.length ? `?${query.join("&")}` : ""}`;
}

/** The state that a fragment stands for: the opening, with what it names and the document has. */
export function readLink(fragment: string, opening: State, doc: LookDocument, views: string[]): State {
  const [name, query] = fragment.replace(/^#/, "").split("?");
  const view = RENAMED[name] ?? name;
  if (!views.includes(view)) return opening;
  const state = { ...opening, view };
  const values = new URLSearchParams(query ?? "");
  for (const field of [...(FIELDS[view] ?? []), ...COMMON]) {
    const text = values.get(field.name);
    if (text) Object.assign(state, field.read(text, doc) ?? {});
  }
  const group = doc.attention.find((item) => item.name === state.group);
  if (group && (state.layer >= group.layers || state.head >= group.heads))
    [state.layer, state.head] = group.default_head;
  return state;
}
