// The normalizers of tokenizer.json that Regard writes: Unicode forms, lower case, accents, space marks.

import type { Step } from "./tokenizer_file.ts";

type Normalizer = { type: string; normalizers?: Step[] } | null;

/** Make a function of all steps, or of those that the user chose: without space marks. */
export function makeNormalizer(part: Normalizer, { marks = true } = {}): (text: string) => string {
  const steps = (part?.normalizers ?? []).filter(({ type }) => marks || (type !== "Prepend" && type !== "Replace"));
  const functions = steps.map(makeStep);
  return (text) => functions.reduce((result, step) => step(result), text);
}

function makeStep(step: Step): (text: string) => string {
  switch (step.type) {
    case "NFC":
    case "NFD":
    case "NFKC":
    case "NFKD":
      return (text) => text.normalize(step.type);
    case "Lowercase": // character by character, as `tokenizers` does: no special form at the end of a word
      return (text) => Array.from(text, (character) => character.toLowerCase()).join("");
    case "StripAccents":
      return (text) => text.replace(/\p{M}/gu, "");
    case "Prepend":
      return (text) => (text ? step.prepend + text : text);
    case "Replace":
      if (typeof step.pattern?.String === "string")
        return (text) => text.replaceAll(step.pattern.String, () => step.content);
      if (String(step.pattern?.Regex).endsWith("\\z")) return (text) => (text ? text + step.content : text);
  }
  throw new Error(`This page has no normalizer "${step.type}".`);
}
