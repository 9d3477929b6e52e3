// Hand a sentence over to the page that shows how the model translates it (see look.ts).
//
// The request is in the tab's session storage, not in the address: texts belong in no history and in no proxy's log.

const KEY = "see-inside";

/** Open a tab that looks into the model; it gets a copy of this tab's session storage. */
export function openInside(body: Record<string, unknown>): void {
  sessionStorage.setItem(KEY, JSON.stringify(body));
  window.open("look", "_blank");
}

/** The request that this tab was opened for. */
export function readInside(): Record<string, unknown> | null {
  return JSON.parse(sessionStorage.getItem(KEY) ?? "null");
}
