// What differs between the columns of a comparison, worse first, with the intervals of the changes.

import { el } from "./dom";
import { draw } from "./tables";
import type { Cell, Page } from "./types";
import { counted } from "./words";

export function show(page: Page, names: string[], into: HTMLElement): void {
  const { differences } = page;
  if (!differences) return;
  const { claim, rows, equal, unknown } = differences;
  if (claim) into.append(el("p", {}, claim));
  const columns = ["quantity", ...names];
  for (const name of names.slice(1)) columns.push(names.length > 2 ? `${name}: change` : "change", "interval");
  const words = new Map<string, string>();
  const tones = new Map<string, string>();
  const cells = rows.map((row, r): Cell[] => {
    row.figures.forEach((figure, i) => words.set(`${r},${1 + i}`, figure));
    const changes = row.changes.flatMap(({ state, significant, change, interval }, i): Cell[] => {
      const column = 1 + names.length + 2 * i;
      tones.set(`${r},${column}`, state);
      return [significant ? `${change} *` : change, interval];
    });
    return [row.label, ...row.values, ...changes];
  });
  const table = draw({
    name: "differences",
    title: "Differences",
    note: `Equal: ${counted(equal, "quantity", "quantities")}; not known on a side: ${unknown}.`,
    columns,
    rows: cells,
    words: (row, column) => words.get(`${row},${column}`),
    tone: (row, column) => tones.get(`${row},${column}`),
  });
  into.append(table.element);
}
