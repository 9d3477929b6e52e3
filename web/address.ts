// Keeps the fragment of the address and what the page shows in step.

const PAUSE = 100; // milliseconds; browsers limit how often an address changes

/**
 * Write the address after changes, and read it when the reader changes it.
 *
 * `write` returns the address of what the page shows, and `read` shows what an address names. `empty` is the address of
 * a page without a fragment. An address that the page has not read yet is never overwritten.
 */
export function followAddress(
  empty: string,
  write: () => string,
  read: (fragment: string) => void,
  signal?: AbortSignal,
): { changed(isStep?: boolean): void } {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let known = location.hash;
  const update = (isStep: boolean) => {
    const link = write();
    if (signal?.aborted || location.hash !== known || link === (known || empty)) return;
    try {
      history[isStep ? "pushState" : "replaceState"](null, "", link);
    } catch {
      // The frame of a notebook has no address of its own, and some browsers limit how often one changes.
    }
    known = location.hash;
  };
  const onChange = () => {
    clearTimeout(timer);
    known = location.hash;
    read(known);
  };
  window.addEventListener("hashchange", onChange, { signal });
  return {
    /** Write the new address: a step of Back at once, any other change after a pause and without a step of Back. */
    changed(isStep = false) {
      clearTimeout(timer);
      if (isStep) update(true);
      else timer = setTimeout(() => update(false), PAUSE);
    },
  };
}
