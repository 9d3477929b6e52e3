// The only place that makes elements. Text reaches the page through `textContent` alone, so a token can never be markup.

type Child = Node | string | null | undefined | false;
type Value = string | number | boolean | null | undefined | ((event: any) => void);

/** Make an element: h("button", {type: "button", onclick: f, "aria-pressed": "true"}, "Save"). */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, Value> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  setAttributes(element, attributes);
  append(element, children);
  return element;
}

/** Set attributes; functions become event listeners ("onclick"), false and null remove an attribute. */
export function setAttributes(element: Element, attributes: Record<string, Value>): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value === null || value === undefined || value === false) element.removeAttribute(name);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

/** Replace all children of an element. */
export function fill(element: Element, ...children: Child[]): void {
  const focused = document.activeElement;
  const isInside = element.contains(focused);
  element.replaceChildren();
  append(element, children);
  // A child that stays keeps the focus, so that the same key works again.
  if (isInside && element.contains(focused)) (focused as HTMLElement).focus({ preventScroll: true });
}

function append(element: Element, children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    element.append(typeof child === "string" ? document.createTextNode(child) : child);
  }
}

/** A labeled checkbox. */
export function checkbox(label: string, checked: boolean, change: (checked: boolean) => void): HTMLLabelElement {
  const input = h("input", { type: "checkbox", onchange: () => change(input.checked) });
  input.checked = checked;
  return h("label", { class: "control" }, input, label);
}

/** A row of buttons of which one is pressed. */
export function choice<T extends string>(
  label: string,
  options: [T, string][],
  current: T,
  change: (value: T) => void,
): HTMLElement {
  const buttons = options.map(([value, text]) =>
    h("button", { type: "button", "aria-pressed": String(value === current), onclick: () => change(value) }, text),
  );
  return h("div", { class: "choice", role: "group", "aria-label": label }, ...buttons);
}

/** A labeled list to choose from. */
export function select<T extends string>(
  label: string,
  options: [T, string][],
  current: T,
  change: (value: T) => void,
): HTMLLabelElement {
  const list = h("select", { onchange: () => change(list.value as T) });
  for (const [value, text] of options) list.append(h("option", { value }, text));
  list.value = current;
  return h("label", { class: "control" }, label, list);
}
