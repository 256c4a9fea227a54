// The longest waits of every part of the time: what a mark, a cell of the heat map or a row leads to.

import { el } from "./dom";
import { draw } from "./tables";
import type { Cell, Run } from "./types";
import * as view from "./view";
import { moment, time } from "./words";

/** Shows the waits around a moment. */
export type Around = (at: number) => void;

export function show(run: Run, several: boolean, into: HTMLElement): Around {
  const { waits } = run;
  if (waits.rows.length === 0) return () => undefined;
  const rows = waits.rows.map(([from, length, task, cause, order, scanned, freed]): Cell[] => [
    from,
    length,
    waits.tasks[task] ?? "",
    waits.causes[cause] ?? "",
    order,
    scanned,
    freed,
  ]);
  const title = several ? `Waits for memory, ${run.name}` : "Waits for memory";
  const kept = waits.rows.length;
  const note =
    waits.count > kept
      ? `The longest ${kept.toLocaleString("en-US")} of ${waits.count.toLocaleString("en-US")} waits: so many of every part of the time. A row shows its time in the charts.`
      : "A row shows its time in the charts.";
  const table = draw({
    name: "waits",
    title,
    note,
    columns: ["at", "waited", "task", "for", "order", "pages scanned", "pages freed"],
    rows,
    words: (row, column) => {
      const cell = rows[row]?.[column];
      if (column === 0) return moment(Number(cell), 1e-6);
      return column === 1 ? time(Number(cell)) : undefined;
    },
    onRow: (row) => {
      const [from, length] = waits.rows[row] ?? [0, 0];
      view.zoom(from - length, from + 2 * length);
    },
  });
  const state = el("output", { class: "note" });
  const all = el("button", { type: "button", hidden: true }, "all waits");
  const section = el("section", {}, el("h3", { tabindex: -1 }, title), el("p", {}, state, " ", all), table.element);
  into.append(section);
  all.addEventListener("click", () => {
    table.filter();
    all.hidden = true;
    state.textContent = "";
  });
  return (at) => {
    const half = Math.max((run.length ?? 1) / 100, 1e-3);
    table.filter((row) => {
      const [from, length] = waits.rows[row] ?? [0, 0];
      return from <= at + half && from + length >= at - half;
    });
    state.textContent = `Waits around ${moment(at, 0.001)}`;
    all.hidden = false;
    section.scrollIntoView({ block: "start" });
    section.querySelector("h3")?.focus({ preventScroll: true });
  };
}
