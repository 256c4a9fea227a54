// Charts over time by uPlot: one cursor for all, drag to zoom, double click to reset, marks of findings.

import uPlot from "uplot";
import { el } from "./dom";
import { follow } from "./seen";
import { colour, lineColour, onTheme } from "./theme";
import type { Chart, Mark, Run } from "./types";
import * as view from "./view";
import { moment, value } from "./words";

const HEIGHT = 170;
/** Steps of an axis of bytes: whole KiB, MiB and so on. */
const BINARY = Array.from({ length: 60 }, (_, power) => 2 ** power);
/** How near a click is to a mark, in pixels. */
const NEAR = 6;

/** A line with the run that it is of. */
interface Drawn {
  name: string;
  run: number;
  x: number[];
  y: (number | null)[];
  limit: boolean;
}

/** The same chart of all runs. */
interface Joined {
  chart: Chart;
  lines: Drawn[];
}

function joined(runs: Run[]): Joined[] {
  const charts = new Map<string, Joined>();
  runs.forEach((run, number) => {
    for (const chart of run.charts) {
      const known = charts.get(chart.id) ?? { chart, lines: [] };
      charts.set(chart.id, known);
      for (const line of chart.lines) {
        const name = runs.length > 1 ? `${run.name}: ${line.name}` : line.name;
        known.lines.push({ name, run: number, x: run.axes[line.x] ?? [], y: line.y, limit: !!line.limit });
      }
    }
  });
  return [...charts.values()];
}

/** One table of values for all lines: `undefined` where a line has no point at a time of another. */
function aligned(lines: Drawn[]): uPlot.AlignedData {
  const first = lines[0]?.x ?? [];
  if (lines.every((line) => line.x === first)) return [first, ...lines.map((line) => line.y)] as uPlot.AlignedData;
  const tables = lines.map((line) => [line.x, line.y] as uPlot.AlignedData);
  return uPlot.join(tables, tables.map(() => [0, 1]));
}

/** Points of all lines, also those that are not known. */
export const points = (data: uPlot.AlignedData): number =>
  data.slice(1).reduce((sum, line) => sum + Array.from(line).filter((y) => y !== undefined).length, 0);

export interface Shown {
  figure: HTMLElement;
  plot: uPlot;
}

/** All charts of the runs. The first is drawn at once, the others one after the other. */
export function show(runs: Run[], into: HTMLElement, goTo: (mark: Mark) => void): void {
  const shown: Shown[] = [];
  const marks = runs.length === 1 ? (runs[0]?.marks ?? []) : [];
  onTheme(() => shown.forEach(({ plot }) => recolour(plot)));
  let resizing = 0;
  addEventListener("resize", () => {
    cancelAnimationFrame(resizing);
    resizing = requestAnimationFrame(() =>
      shown.forEach(({ plot, figure }) => plot.setSize({ width: width(figure), height: HEIGHT })),
    );
  });

  const waiting = joined(runs);
  const next = () => {
    const chart = waiting.shift();
    if (!chart) return;
    const made = draw(chart, into, marks, goTo);
    shown.push(made);
    const { figure, plot } = made;
    follow(figure, () => {
      const [min, max] = view.range();
      plot.setScale("x", { min, max });
      figure.dataset["range"] = `${min},${max}`;
    });
    setTimeout(next);
  };
  next();
}

function recolour(plot: uPlot): void {
  const { series, root } = plot;
  root.querySelectorAll<HTMLElement>(".u-series .u-marker").forEach((marker, i) => {
    const stroke = series[i]?.stroke;
    if (typeof stroke === "function") marker.style.borderColor = String(stroke(plot, i));
  });
  plot.redraw(false);
}

const width = (figure: HTMLElement): number => Math.max(240, figure.clientWidth);

function draw({ chart, lines }: Joined, into: HTMLElement, marks: Mark[], goTo: (mark: Mark) => void): Shown {
  const heading = el("h3", {}, chart.title);
  const figure = el(
    "figure",
    {
      class: "chart",
      tabindex: 0,
      role: "group",
      "aria-label": `${chart.title}, ${lines.length} lines. Arrow keys move, + and - zoom, 0 shows all.`,
      "data-chart": chart.id,
    },
    el("figcaption", {}, heading, el("span", { class: "note" }, chart.note)),
  );
  figure.addEventListener("keydown", view.onKey);
  into.append(figure);
  const data = aligned(lines);
  const [min, max] = view.range();
  let colours = 0;
  const series: uPlot.Series[] = lines.map((line) => {
    const number = colours++;
    return {
      label: line.name,
      stroke: () => (line.limit ? colour("limit") : lineColour(number)),
      width: 1,
      ...(line.limit ? { dash: [6, 4] } : line.run % 2 ? { dash: [2, 2] } : {}),
      points: { show: line.y.length < 3 },
      value: (_plot, y, _series, at) => (at == null ? "" : value(y, chart.unit)),
    };
  });
  const axis = { stroke: () => colour("text"), grid: { stroke: () => colour("grid"), width: 1 }, ticks: { show: false } };
  const options: uPlot.Options = {
    width: width(figure),
    height: HEIGHT,
    cursor: {
      sync: { key: "time", setSeries: false },
      drag: { x: true, y: false, setScale: false },
      bind: {
        dblclick: () => () => {
          view.reset();
          return null;
        },
      },
    },
    scales: {
      x: { time: false, min, max, auto: false },
      y: { range: (_plot, low, high) => [Math.min(0, low ?? 0), (high ?? 0) > 0 ? (high ?? 0) * 1.05 : 1] },
    },
    axes: [
      { ...axis, size: 30, values: (_plot, ticks) => ticks.map((t) => moment(t, (ticks[1] ?? 1) - (ticks[0] ?? 0))) },
      { ...axis, size: 80, ...(chart.unit.startsWith("B") ? { incrs: BINARY } : {}), values: (_plot, ticks) => ticks.map((y) => value(y, chart.unit)) },
    ],
    series: [{ label: "time", value: (_plot, x) => (x == null ? "" : moment(x, 0.001)) }, ...series],
    hooks: {
      setSelect: [
        (plot) => {
          const { left, width } = plot.select;
          if (width > 2) view.zoom(plot.posToVal(left, "x"), plot.posToVal(left + width, "x"));
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        },
      ],
      draw: [
        (plot) => {
          drawMarks(plot, marks);
          if (performance.getEntriesByName("first chart").length === 0) performance.mark("first chart");
          figure.dataset["drawn"] = String(Number(figure.dataset["drawn"] ?? 0) + 1);
        },
      ],
    },
  };
  const plot = new uPlot(options, data, figure);
  figure.dataset["points"] = String(points(data));
  figure.dataset["range"] = `${min},${max}`;
  let pressed = 0;
  plot.over.addEventListener("mousedown", (event) => (pressed = event.clientX));
  plot.over.addEventListener("click", (event) => {
    const near = (mark: Mark) => Math.abs(plot.valToPos(mark.at, "x") - event.offsetX);
    const nearest = [...marks].sort((a, b) => near(a) - near(b))[0];
    if (Math.abs(event.clientX - pressed) < 3 && nearest && near(nearest) <= NEAR) goTo(nearest);
  });
  plot.over.addEventListener(
    "wheel",
    (event) => {
      const sideways = event.shiftKey ? event.deltaY : event.deltaX;
      if (event.ctrlKey) view.scale(event.deltaY > 0 ? 1.25 : 0.8, plot.posToVal(event.offsetX, "x"));
      else if (sideways) view.pan(sideways / 1000);
      else return;
      event.preventDefault();
    },
    { passive: false },
  );
  return { figure, plot };
}

function drawMarks(plot: uPlot, marks: Mark[]): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = colour("bad");
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
  for (const mark of marks) {
    const x = Math.round(plot.valToPos(mark.at, "x", true));
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    const size = 5 * devicePixelRatio;
    ctx.beginPath();
    ctx.moveTo(x - size, bbox.top);
    ctx.lineTo(x + size, bbox.top);
    ctx.lineTo(x, bbox.top + size * 1.5);
    ctx.fill();
  }
  ctx.restore();
}
