// Which words of two texts are the same: a longest common subsequence.

/** An item that both lists have, or only one of them; `a` and `b` are places in the lists. */
export type Edit =
  { kind: "same"; a: number; b: number } | { kind: "removed"; a: number } | { kind: "added"; b: number };

/** A word with the space before it. "removed": only the first text has it; "added": only the second. */
export interface Piece {
  kind: Edit["kind"];
  text: string;
}

const MAX_CELLS = 4_000_000; // beyond it (two texts of 2,000 words), everything between start and end counts as replaced

/** The edits from one list to another, in order; what was removed comes before what replaced it. */
export function diff(a: readonly string[], b: readonly string[]): Edit[] {
  let [start, endA, endB] = [0, a.length, b.length];
  while (start < endA && start < endB && a[start] === b[start]) start++;
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) [endA, endB] = [endA - 1, endB - 1];
  const [rows, columns] = [endA - start, endB - start];
  const fits = rows * columns <= MAX_CELLS;
  // lengths[i][j]: length of the longest common subsequence of what follows place i of a and j of b
  const width = columns + 1;
  const lengths = fits ? new Uint16Array((rows + 1) * width) : null;
  if (lengths)
    for (let i = rows - 1; i >= 0; i--)
      for (let j = columns - 1; j >= 0; j--)
        lengths[i * width + j] =
          a[start + i] === b[start + j]
            ? lengths[(i + 1) * width + j + 1] + 1
            : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
  const edits: Edit[] = Array.from({ length: start }, (_, i) => ({ kind: "same", a: i, b: i }));
  let [i, j] = [0, 0];
  while (i < rows || j < columns) {
    if (lengths && i < rows && j < columns && a[start + i] === b[start + j])
      edits.push({ kind: "same", a: start + i++, b: start + j++ });
    else if (i < rows && (!lengths || j === columns || lengths[(i + 1) * width + j] >= lengths[i * width + j + 1]))
      edits.push({ kind: "removed", a: start + i++ });
    else edits.push({ kind: "added", b: start + j++ });
  }
  for (let k = 0; endA + k < a.length; k++) edits.push({ kind: "same", a: endA + k, b: endB + k });
  return edits;
}

// Scripts without spaces between words are compared character by character.
const UNSPACED = "\\p{sc=Han}\\p{sc=Hiragana}\\p{sc=Katakana}\\p{sc=Thai}\\p{sc=Lao}\\p{sc=Khmer}";
const WORD = new RegExp(`\\s*(?:(?:(?![${UNSPACED}])[\\p{L}\\p{M}\\p{N}_'’-])+|\\S)`, "gu");

/** The words and punctuation marks of a text, each with the space before it. */
export function splitWords(text: string): string[] {
  return text.match(WORD) ?? [];
}

/** The words of two texts as one list. */
export function diffWords(before: string, after: string): Piece[] {
  const [a, b] = [splitWords(before), splitWords(after)];
  const trim = (words: string[]) => words.map((word) => word.trim());
  return diff(trim(a), trim(b)).map((edit) => ({
    kind: edit.kind,
    text: edit.kind === "removed" ? a[edit.a] : b[edit.b],
  }));
}

/** How many words (not punctuation marks) of the two texts differ: the larger number of both. */
export function countDifferent(pieces: Piece[]): number {
  const count = (kind: Edit["kind"]) =>
    pieces.filter((piece) => piece.kind === kind && /[\p{L}\p{N}]/u.test(piece.text)).length;
  return Math.max(count("removed"), count("added"));
}
