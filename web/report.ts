// Status lines of the pages that run models.

/** Show a message in a status line, or what went wrong: in its own color, with a sign, and announced at once. */
export function report(line: HTMLElement, message: string, isError = false): void {
  line.textContent = message;
  line.classList.toggle("error", isError);
  line.setAttribute("role", isError ? "alert" : "status");
}
