// Accessibility that the theme misses: tables that scroll take the keyboard; copy buttons and nested menus are no landmarks.
function repair() {
  for (const area of document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])")) area.tabIndex = 0;
  for (const nav of document.querySelectorAll(".md-code__nav:not([role]), .md-nav .md-nav:not([role])")) {
    for (const name of ["aria-labelledby", "aria-label", "aria-expanded"]) nav.removeAttribute(name);
    nav.setAttribute("role", "none");
  }
}
new MutationObserver(repair).observe(document.documentElement, { childList: true, subtree: true });
addEventListener("DOMContentLoaded", repair);
