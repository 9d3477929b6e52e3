// Beam search over a table of next-word probabilities, step by step, as `regard.decode.beam` does it.

import { fill, h } from "../../dom.ts";
import type { Form } from "../form.ts";
import { svg } from "../svg.ts";

interface Table {
  label: string;
  words: string[]; // the first is <END>, the last <START>
  probabilities: number[][];
}

interface Params {
  tables: Record<string, Table>;
  table: string;
  k: number;
  steps: number;
}

interface Node {
  parent?: Node;
  depth: number;
  place: number; // among the candidates of its step, best first
  token: number;
  total: number; // log p of all its words
  status: "open" | "finished" | "dropped";
}

const [COLUMN, ROW, TOP] = [132, 44, 30];

/** Search with k hypotheses; return the best 2k candidates of each step. */
export function search({ words, probabilities }: Table, k: number, steps: number): Node[][] {
  let open: Node[] = [{ depth: 0, place: 0, token: words.length - 1, total: 0, status: "open" }];
  const levels = [open];
  let best = -Infinity;
  while (levels.length <= steps && open.length && best < open[0]!.total) {
    const depth = levels.length;
    const candidates = open
      .flatMap((parent) =>
        probabilities[parent.token]!.map((p, token): Node => ({
          parent,
          depth,
          place: 0,
          token,
          total: parent.total + Math.log(p),
          status: "dropped",
        })),
      )
      .filter(({ total }) => total > -Infinity)
      .sort((a, b) => b.total - a.total)
      .slice(0, 2 * k);
    open = depth === steps ? [] : candidates.filter(({ token }) => token !== 0).slice(0, k);
    for (const node of open) node.status = "open";
    candidates.forEach((node, place) => {
      node.place = place;
      if (place < k && (node.token === 0 || depth === steps)) node.status = "finished";
      if (node.status === "finished") best = Math.max(best, node.total);
    });
    levels.push(candidates);
  }
  return levels;
}

/** Return a hypothesis and its ancestors, without <START>. */
function trackBack(node: Node): Node[] {
  return node.parent ? [...trackBack(node.parent), node] : [];
}

export function beamControl(form: Form, { tables, table, k, steps }: Params): void {
  form.choice(
    "table",
    "Table",
    Object.entries(tables).map(([name, { label }]) => [name, label]),
    table,
  );
  form.slider("k", "k: open hypotheses", { min: 1, max: 4, step: 1, value: k });
  form.slider("step", "Step", { min: 0, max: steps, step: 1, value: 1 });
  form.run(() => {
    const { words, probabilities } = tables[form.string("table")]!;
    const [size, step] = [form.number("k"), form.number("step")];
    const all = search({ label: "", words, probabilities }, size, steps);
    const levels = all.slice(0, step + 1);
    const finished = levels.flat().filter(({ status }) => status === "finished");
    const best = finished.reduce<Node | undefined>((a, b) => (a && a.total >= b.total ? a : b), undefined);
    const isOver = step >= all.length - 1;
    const kept = (levels[step] ?? []).filter(({ status }) => status === "open");
    const write = (node: Node) =>
      trackBack(node)
        .map(({ token }) => words[token])
        .join(" ");
    const path = isOver && best ? trackBack(best) : [];
    const text = isOver
      ? `The search is over after step ${all.length - 1}. Backtracking from the best finished hypothesis: ${best && write(best)}.`
      : `After step ${step}, open: ${kept.map((node) => write(node) || "<START>").join(", ")}.`;
    fill(
      form.picture,
      h(
        "div",
        { class: "table", tabindex: 0, role: "group", "aria-label": "Tree of hypotheses" },
        drawTree(levels, words, path),
      ),
      h("p", { class: "small", role: "status" }, text),
    );
    form.show("kept", "Open hypotheses after this step", kept.length);
    form.show("best_open", "log p of the best of them", kept[0]?.total ?? -Infinity);
    form.show("finished", "Finished so far", finished.length);
    form.show("best_finished", "log p of the best finished", best?.total ?? -Infinity);
  });
}

function drawTree(levels: Node[][], words: string[], path: Node[]): SVGElement {
  const [width, height] = [COLUMN * levels.length, ROW * Math.max(...levels.map(({ length }) => length)) + TOP];
  const picture = svg("svg", {
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    class: "tree",
    "aria-hidden": "true",
  });
  for (const node of levels.flat()) {
    const [x, y] = [COLUMN * node.depth + 4, ROW * node.place + TOP];
    const state = path.includes(node) ? "best" : node.status;
    if (node.parent) {
      const [left, from] = [x - COLUMN + 84, ROW * node.parent.place + TOP];
      picture.append(
        svg("path", { d: `M${left},${from}C${left + 24},${from} ${x - 24},${y} ${x},${y}`, class: state }),
      );
    }
    picture.append(
      svg("rect", { x, y: y - 19, width: 84, height: 38, rx: 6, class: state }),
      svg("text", { x: x + 42, y: y - 3 }, words[node.token]!),
      svg("text", { x: x + 42, y: y + 13 }, node.parent ? node.total.toFixed(2) : "0"),
    );
  }
  return picture;
}
