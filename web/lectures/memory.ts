// What the reader did, kept in this browser only. Storage may be off: then it lasts as long as the page.

const KEY = "regard-lectures";

function load(): Record<string, number> {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? "{}");
  } catch {
    return {};
  }
}

const answers = load();

/** Return the option that was chosen at a station, or undefined. */
export const getAnswer = (station: string): number | undefined => answers[station];

/** Remember the option that was chosen at a station. */
export function setAnswer(station: string, option: number): void {
  answers[station] = option;
  try {
    localStorage.setItem(KEY, JSON.stringify(answers));
  } catch {
    // Private windows and file pages may have no storage.
  }
}
