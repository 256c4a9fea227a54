// What the file holds: the page's own data, and the report in JSON, schema_version 2.

export type Unit = "%" | "B" | "B/s" | "/s" | "tasks";

export interface Line {
  name: string;
  /** Number of its time axis. */
  x: number;
  y: (number | null)[];
  limit?: boolean;
}

export interface Chart {
  id: string;
  title: string;
  unit: Unit;
  note: string;
  lines: Line[];
}

export interface Mark {
  key: string;
  at: number;
  what: string;
}

export interface Heat {
  start: number;
  width: number;
  columns: number;
  rows: number[];
  /** Column, row, count. */
  cells: [number, number, number][];
}

/** Begin and length in seconds, task, cause, order, pages scanned and freed. */
export type Wait = [number, number, number, number, number | null, number, number];

export interface Waits {
  count: number;
  tasks: string[];
  causes: string[];
  rows: Wait[];
}

/** Seconds, length in seconds if it is known, what, and more of it. */
export type Happened = [number, number | null, string, string];

export interface Events {
  count: number;
  rows: Happened[];
}

export interface Frame {
  name: string;
  value: number;
  calls?: Frame[];
}

export interface Run {
  name: string;
  heading: string[];
  length: number | null;
  start: number | null;
  axes: number[][];
  charts: Chart[];
  missing: string[];
  zero: string[];
  marks: Mark[];
  latency: Heat | null;
  waits: Waits;
  events: Events;
  flame: { unit: "ns" | "times"; root: Frame } | null;
}

export interface Difference {
  label: string;
  /** Of each column; the figures are the same with three digits and a unit. */
  values: (number | null)[];
  figures: string[];
  /** Of each column behind the first. */
  changes: { state: string; significant: boolean; change: string; interval: string }[];
}

export interface Page {
  title: string;
  version: string;
  licences: string;
  runs: Run[];
  differences: { claim: string | null; rows: Difference[]; equal: number; unknown: number } | null;
}

export type Cell = number | bigint | string | null;

export interface Finding {
  input: number;
  key: string;
  severity: number;
  sentence: string;
  detail: string;
  command: string;
  cost?: { waited: number; elapsed: number | null; share: number | null; by: { name: string; waited: number }[] };
  pressure?: { of: string; memory_some: number | null; memory_full: number | null; io_some: number | null };
  fix?: string;
  next?: string;
}

export interface CrossCheck {
  input: number;
  label: string;
  events: Cell;
  counters: Cell;
  difference: Cell;
}

export interface MetricRow {
  key: string;
  label: string;
  unit: string;
  values: Cell[];
  na: (string | null)[];
  change_percent: (number | null)[];
  verdict: (string | null)[];
  low: (number | null)[];
  high: (number | null)[];
  confidence: (number | null)[];
  significant: (boolean | null)[];
  shift: (number | null)[];
  shift_low: (number | null)[];
  shift_high: (number | null)[];
}

interface Named {
  name: string;
  title: string;
  note: string;
}

export interface MetricTable extends Named {
  kind: "metric";
  columns: string[];
  rows: MetricRow[];
}

export interface ListTable extends Named {
  kind: "list" | "series";
  input: number;
  columns: { key: string; label: string; unit: string }[];
  rows: Cell[][];
  na: [number, number, string][];
}

export interface MatrixTable extends Named {
  kind: "matrix";
  input: number;
  row_axis: string;
  column_axis: string;
  unit: string;
  rows: string[];
  columns: string[];
  values: Cell[][];
}

export interface HistogramTable extends Named {
  kind: "histogram";
  input: number;
  unit: string;
  slots: [number, number, number][];
}

export type Table = MetricTable | ListTable | MatrixTable | HistogramTable;

export interface Report {
  inputs: { name: string; column: number }[];
  notes: string[];
  findings: Finding[] | null;
  cross_check: CrossCheck[] | null;
  tables: Table[];
}
