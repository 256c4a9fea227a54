// Tables that sort and filter, each with its exact figures and a CSV button.

import { download, el } from "./dom";
import type { Cell, ListTable, MatrixTable, MetricTable, Report, Table } from "./types";

/** Rows drawn at first; a button draws the rest. */
const FIRST = 200;

/** A table that can be drawn: cells as they are, and words instead of those that are not known. */
export interface Grid {
  name: string;
  title: string;
  note: string;
  columns: string[];
  rows: Cell[][];
  /** Words for a cell; else the cell itself. */
  words?: (row: number, column: number) => string | undefined;
  /** A class of a cell. */
  tone?: (row: number, column: number) => string | undefined;
  /** How full a cell is, from 0 to 1. */
  fill?: (row: number, column: number) => number;
  onRow?: (row: number) => void;
}

const text = (cell: Cell): string => (cell === null ? "n/a" : String(cell));

/** Numbers by size, words by letters; what is not known is last either way. */
function order(a: Cell, b: Cell, down: boolean): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  const words = typeof a === "string" || typeof b === "string";
  const result = words ? String(a).localeCompare(String(b)) : a < b ? -1 : a > b ? 1 : 0;
  return down ? -result : result;
}

/** RFC 4180. */
function csv(grid: Grid): string {
  const field = (cell: Cell) => {
    const word = cell === null ? "" : String(cell);
    return /[",\r\n]/.test(word) ? `"${word.replaceAll('"', '""')}"` : word;
  };
  return [grid.columns, ...grid.rows].map((row) => row.map(field).join(",") + "\r\n").join("");
}

export interface Drawn {
  element: HTMLElement;
  /** Shows rows that hold a text and pass a test. Returns how many. */
  filter: (test?: (row: number) => boolean) => number;
}

export function draw(grid: Grid): Drawn {
  let [sorted, down, all] = [-1, false, false];
  let test: ((row: number) => boolean) | undefined;
  const numeric = grid.columns.map((_, i) => grid.rows.some((row) => typeof row[i] !== "string" && row[i] !== null));
  const cellText = (row: number, column: number) => grid.words?.(row, column) ?? text(grid.rows[row]?.[column] ?? null);
  const body = el("tbody");
  const count = el("output", { class: "note" });
  const search = el("input", { type: "search", placeholder: "filter", "aria-label": `Filter ${grid.title}` });
  const more = el("button", { type: "button" });
  const heads = grid.columns.map((label, column) =>
    el(
      "th",
      { scope: "col" },
      el("button", { type: "button", click: () => sort(column) }, label || "\u00a0"),
    ),
  );
  const rows = () => {
    const wanted = search.value.toLowerCase();
    const holds = (row: number) => grid.columns.some((_, i) => cellText(row, i).toLowerCase().includes(wanted));
    const found = grid.rows.map((_, i) => i).filter((row) => (!wanted || holds(row)) && (!test || test(row)));
    if (sorted >= 0) found.sort((a, b) => order(grid.rows[a]?.[sorted] ?? null, grid.rows[b]?.[sorted] ?? null, down));
    return found;
  };
  const render = () => {
    const found = rows();
    const drawn = all ? found : found.slice(0, FIRST);
    body.replaceChildren(
      ...drawn.map((row) => {
        const cells = grid.columns.map((_, column) => {
          const tone = [numeric[column] ? "number" : "", grid.tone?.(row, column) ?? ""].join(" ").trim();
          const cell = el("td", tone ? { class: tone } : {}, cellText(row, column));
          const fill = grid.fill?.(row, column);
          if (fill) cell.style.setProperty("--fill", `${Math.round(fill * 80)}%`);
          return cell;
        });
        if (!grid.onRow) return el("tr", {}, ...cells);
        const act = () => grid.onRow?.(row);
        const key = (event: Event) => (event as KeyboardEvent).key === "Enter" && act();
        return el("tr", { tabindex: 0, class: "act", click: act, keydown: key }, ...cells);
      }),
    );
    more.hidden = drawn.length === found.length;
    more.textContent = `show all ${found.length.toLocaleString("en-US")} rows`;
    count.textContent = `${found.length.toLocaleString("en-US")} of ${grid.rows.length.toLocaleString("en-US")} rows`;
    element.dataset["rows"] = String(found.length);
    return found.length;
  };
  const sort = (column: number) => {
    // Numbers begin with the largest.
    down = sorted === column ? !down : numeric[column] === true;
    sorted = column;
    heads.forEach((head, i) => head.setAttribute("aria-sort", i !== column ? "none" : down ? "descending" : "ascending"));
    render();
  };
  search.addEventListener("input", render);
  more.addEventListener("click", () => {
    all = true;
    render();
  });
  const save = el("button", { type: "button", click: () => download(`${grid.name}.csv`, "text/csv", csv(grid)) }, "CSV");
  const table = el("table", {}, el("caption", { class: "unseen" }, grid.title), el("thead", {}, el("tr", {}, ...heads)), body);
  const element = el(
    "div",
    { class: "grid", "data-table": grid.name },
    grid.note && el("p", { class: "note" }, grid.note),
    el("div", { class: "tools" }, search, save, count),
    el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": grid.title }, table),
    more,
  );
  render();
  return {
    element,
    filter: (wanted) => {
      test = wanted;
      return render();
    },
  };
}

const labelled = (label: string, unit: string) => (unit ? `${label} (${unit})` : label);

function metric(table: MetricTable): Grid {
  const several = table.columns.length > 1;
  const columns = ["", "unit"];
  table.columns.forEach((name, i) => {
    columns.push(name);
    if (several && i > 0) columns.push("change %", "by (interval)");
  });
  const number = (value: number | null | undefined) => (value == null ? "n/a" : String(Number(value.toPrecision(4))));
  const notes = new Map<string, string>();
  const tones = new Map<string, string>();
  const rows = table.rows.map((row, r) => {
    const cells: Cell[] = [row.label, row.unit];
    row.values.forEach((cell, i) => {
      if (cell === null) notes.set(`${r},${cells.length}`, `n/a (${row.na[i] ?? "not known"})`);
      const [low, high] = [row.low[i], row.high[i]];
      if (low != null && high != null) notes.set(`${r},${cells.length}`, `${text(cell)} [${number(low)}, ${number(high)}]`);
      cells.push(cell);
      if (!several || i === 0) return;
      const change = row.change_percent[i] ?? null;
      if (change !== null) notes.set(`${r},${cells.length}`, `${change > 0 ? "+" : ""}${number(change)}`);
      // With one run on a side nothing is called better or worse.
      const tone = row.significant[i] ? row.verdict[i] : null;
      if (tone) tones.set(`${r},${cells.length}`, tone);
      cells.push(change);
      const shift = row.shift[i] ?? null;
      const interval = `${number(shift)} [${number(row.shift_low[i])}, ${number(row.shift_high[i])}]`;
      if (shift !== null) notes.set(`${r},${cells.length}`, interval + (row.significant[i] ? ", significant" : ""));
      cells.push(shift);
    });
    return cells;
  });
  const { name, title, note } = table;
  const words = (r: number, c: number) => notes.get(`${r},${c}`);
  return { name, title, note, columns, rows, words, tone: (r, c) => tones.get(`${r},${c}`) };
}

function list(table: ListTable): Grid {
  const reasons = new Map(table.na.map(([row, column, reason]) => [`${row},${column}`, `n/a (${reason})`]));
  const { name, title, note, rows } = table;
  const columns = table.columns.map(({ label, unit }) => labelled(label, unit));
  return { name, title, note, columns, rows, words: (row, column) => reasons.get(`${row},${column}`) };
}

/** Counts from one thing to another, as a heat map. */
function matrix(table: MatrixTable): Grid {
  const size = (cell: Cell | undefined) => (typeof cell === "number" || typeof cell === "bigint" ? Number(cell) : 0);
  const most = Math.max(1, ...table.values.flat().map(size));
  const { name, title } = table;
  const columns = [`${table.row_axis} \\ ${table.column_axis}`, ...table.columns.map((label) => labelled(label, table.unit))];
  const rows = table.values.map((cells, row): Cell[] => [table.rows[row] ?? "", ...cells]);
  const fill = (row: number, column: number) => (column === 0 ? 0 : size(rows[row]?.[column]) / most);
  return { name, title, note: table.note, columns, rows, fill };
}

function grid(table: Table): Grid {
  switch (table.kind) {
    case "metric":
      return metric(table);
    case "list":
    case "series":
      return list(table);
    case "matrix":
      return matrix(table);
    case "histogram": {
      const most = Math.max(1, ...table.slots.map((slot) => slot[2]));
      const columns = [labelled("from", table.unit), labelled("to", table.unit), "count"];
      const fill = (row: number, column: number) => (column === 2 ? (table.slots[row]?.[2] ?? 0) / most : 0);
      return { name: table.name, title: table.title, note: table.note, columns, rows: table.slots, fill };
    }
  }
}

/** Matrices in which anything was counted, drawn at once: tasks from node to node. */
export function matrices(report: Report, into: HTMLElement): void {
  for (const table of report.tables) {
    if (table.kind !== "matrix" || !table.values.flat().some((cell) => cell !== null && Number(cell) > 0)) continue;
    const title = report.inputs.length > 1 ? `${table.title}, ${report.inputs[table.input]?.name ?? ""}` : table.title;
    into.append(el("section", { class: "matrix" }, el("h3", {}, title), draw(grid(table)).element));
  }
}

/** All tables, each closed until somebody opens it. */
export function show(report: Report, into: HTMLElement): void {
  const several = report.inputs.length > 1;
  const cross = report.cross_check ?? [];
  const grids: [string, () => Grid][] = [];
  if (cross.length > 0) {
    const title = "Events beside counters";
    const columns = ["what", "events", "counters", "difference"];
    const rows = cross.map((row): Cell[] => [row.label, row.events, row.counters, row.difference]);
    grids.push([title, () => ({ name: "cross-check", title, note: "", columns, rows })]);
  }
  for (const table of report.tables) {
    const input = "input" in table && several ? `, ${report.inputs[table.input]?.name ?? ""}` : "";
    grids.push([`${table.title}${input}`, () => grid(table)]);
  }
  const search = el("input", { type: "search", placeholder: "find a table", "aria-label": "Find a table" });
  const entries = grids.map(([title, make]) => {
    const entry = el("details", { class: "table" }, el("summary", {}, title));
    entry.addEventListener("toggle", () => {
      if (entry.open && entry.childElementCount === 1) entry.append(draw(make()).element);
    });
    return { entry, title: title.toLowerCase() };
  });
  search.addEventListener("input", () => {
    for (const { entry, title } of entries) entry.hidden = !title.includes(search.value.toLowerCase());
  });
  into.append(el("div", { class: "tools" }, search), ...entries.map(({ entry }) => entry));
}
