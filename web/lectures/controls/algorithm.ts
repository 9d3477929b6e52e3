// Multi-head attention line by line: pseudo-code, Regard's code, and the matrix that each line computes.

import { fill, h } from "../../dom.ts";
import type { Form } from "../form.ts";
import { drawMatrix, type Matrix, multiply, norm, scale, softmaxRows, transpose } from "../matrix.ts";

interface Params {
  x: Matrix;
  query: Matrix[]; // (D, K) of each head, as key and value
  key: Matrix[];
  value: Matrix[];
  output: Matrix; // (heads V, D)
  lines: [name: string, pseudo: string, code: string, shape: string[]][];
}

/** Return every matrix of the algorithm by its name. */
export function compute({ x, query, key, value, output }: Params): Record<string, Matrix> {
  const heads = query.map((_, c): Record<string, Matrix> & { h: Matrix } => {
    const [q, k, v] = [multiply(x, query[c]!), multiply(x, key[c]!), multiply(x, value[c]!)];
    const scores = scale(multiply(q, transpose(k)), 1 / Math.sqrt(k[0]!.length));
    const weights = softmaxRows(scores);
    return { q, k, v, scores, weights, h: multiply(weights, v) };
  });
  const all = x.map((_, n) => heads.flatMap(({ h }) => h[n]!));
  return { ...heads[0], all, y: multiply(all, output) };
}

export function algorithmControl(form: Form, params: Params): void {
  const matrices = compute(params);
  form.choice(
    "line",
    "Line",
    params.lines.map(([name, pseudo]) => [name, pseudo]),
    "scores",
  );
  const matrix = h("div");
  const choose = (name: string) => {
    const list = form.picture.parentElement!.querySelector<HTMLSelectElement>('[name="line"]')!;
    list.value = name;
    list.dispatchEvent(new Event("change"));
  };
  const rows = params.lines.map(([name, pseudo, code, shape]) =>
    h(
      "tr",
      { onpointerenter: () => choose(name) },
      h("td", {}, pseudo),
      h("td", {}, h("code", {}, code)),
      h("td", {}, shape.join(" × ")),
    ),
  );
  const head = ["Pseudo-code", "Regard", "Shape"].map((name) => h("th", { scope: "col" }, name));
  const title = "Pseudo-code and Regard's code";
  const table = h("table", {}, h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows));
  fill(form.picture, h("div", { class: "table", tabindex: 0, role: "group", "aria-label": title }, table), matrix);
  form.run(() => {
    const chosen = params.lines.findIndex(([name]) => name === form.string("line"));
    rows.forEach((row, i) => (row.style.background = i === chosen ? "var(--raised)" : ""));
    const [name, pseudo] = params.lines[chosen]!;
    fill(matrix, drawMatrix(pseudo, matrices[name]!));
    form.show("rows", "Rows", matrices[name]!.length);
    form.show("columns", "Columns", matrices[name]![0]!.length);
    form.show("norm", "Root of the sum of squares", norm(matrices[name]!));
  });
}
