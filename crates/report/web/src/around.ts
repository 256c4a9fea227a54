// Lists of what happened: waits, and other events. A mark, a cell of the heat map or a row leads to them.

import { el } from "./dom";
import { draw } from "./tables";
import type { Cell, Run } from "./types";
import * as view from "./view";
import { moment, time } from "./words";

/** Shows what happened around a moment. Returns how much that is. */
export interface List {
  element: HTMLElement;
  around: (at: number) => number;
}

interface Rows {
  id: string;
  title: string;
  /** All, also those that are not listed. */
  count: number;
  columns: string[];
  /** The first two cells are begin and length in seconds. */
  rows: Cell[][];
}

function list(of: Rows, length: number): List {
  const { rows } = of;
  const ends = (row: number): [number, number] => {
    const from = Number(rows[row]?.[0] ?? 0);
    return [from, from + Number(rows[row]?.[1] ?? 0)];
  };
  const number = (value: number) => value.toLocaleString("en-US");
  const shows = "A click on a row shows its time in the charts.";
  const note = of.count > rows.length ? `The largest ${number(rows.length)} of ${number(of.count)}: so many of every part of the time. ${shows}` : shows;
  const table = draw({
    name: of.id,
    title: of.title,
    note,
    columns: of.columns,
    rows,
    words: (row, column) => {
      const cell = rows[row]?.[column];
      if (column === 0) return moment(Number(cell), 1e-6);
      return column === 1 && cell !== null ? time(Number(cell)) : undefined;
    },
    onRow: (row) => {
      const [from, to] = ends(row);
      const half = Math.max(to - from, length / 200, 1e-6);
      view.zoom(from - half, to + half);
    },
  });
  const state = el("output", { class: "note" });
  const all = el("button", { type: "button", hidden: true }, "all");
  const heading = el("h3", { tabindex: -1 }, of.title);
  const element = el("section", { "data-list": of.id }, heading, el("p", {}, state, " ", all), table.element);
  all.addEventListener("click", () => {
    table.filter();
    all.hidden = true;
    state.textContent = "";
  });
  return {
    element,
    around: (at) => {
      const half = Math.max(length / 100, 1e-3);
      const shown = table.filter((row) => {
        const [from, to] = ends(row);
        return from <= at + half && to >= at - half;
      });
      state.textContent = `around ${moment(at, 0.001)}`;
      all.hidden = false;
      return shown;
    },
  };
}

/** The lists of a run that have anything. */
export function lists(run: Run, several: boolean): List[] {
  const { waits, events } = run;
  const of = several ? `, ${run.name}` : "";
  const made: Rows[] = [
    {
      id: "waits",
      title: `Waits for memory${of}`,
      count: waits.count,
      columns: ["at", "waited", "task", "for", "order", "pages scanned", "pages freed"],
      rows: waits.rows.map(([from, length, task, cause, ...more]): Cell[] => [
        from,
        length,
        waits.tasks[task] ?? "",
        waits.causes[cause] ?? "",
        ...more,
      ]),
    },
    {
      id: "events",
      title: `Other events${of}`,
      count: events.count,
      columns: ["at", "length", "what", "more"],
      rows: events.rows,
    },
  ];
  return made.filter(({ rows }) => rows.length > 0).map((rows) => list(rows, run.length ?? 1));
}

/** Shows the lists around a moment, and goes to the first that has anything there. */
export function goTo(lists: List[], at: number): void {
  const shown = lists.filter((list) => list.around(at) > 0);
  const first = shown[0] ?? lists[0];
  first?.element.scrollIntoView({ block: "start" });
  first?.element.querySelector("h3")?.focus({ preventScroll: true });
}
