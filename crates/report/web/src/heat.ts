// Heat map of latency: how many waits of which length began when.

import { el } from "./dom";
import { follow } from "./seen";
import { colour, onTheme } from "./theme";
import type { Heat } from "./types";
import * as view from "./view";
import { counted, moment, time } from "./words";

const HEIGHT = 200;
const LEFT = 80;
const BELOW = 20;

export function show(title: string, heat: Heat, into: HTMLElement, goTo: (at: number) => void): void {
  const most = heat.cells.reduce((most, cell) => Math.max(most, cell[2]), 1);
  const waits = heat.cells.reduce((sum, cell) => sum + cell[2], 0);
  const longest = heat.rows[heat.rows.length - 1] ?? 0;
  const label = `${counted(waits, "wait")} over time, by length up to ${time(longest * 1.5)}`;
  const canvas = el("canvas", { role: "img", "aria-label": label });
  const told = el("output", { class: "note" }, label);
  const figure = el("figure", { class: "chart", "data-heat": waits, tabindex: 0 }, el("figcaption", {}, el("h3", {}, title), told), canvas);
  figure.addEventListener("keydown", view.onKey);
  into.append(figure);
  const size = () => ({ width: Math.max(240, figure.clientWidth), tall: (HEIGHT - BELOW) / heat.rows.length });

  const draw = () => {
    const { width, tall } = size();
    const ratio = devicePixelRatio;
    canvas.width = width * ratio;
    canvas.height = HEIGHT * ratio;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${HEIGHT}px`;
    const context = canvas.getContext("2d");
    if (!context) return;
    context.scale(ratio, ratio);
    const [from, to] = view.range();
    const place = (at: number) => LEFT + ((at - from) / (to - from)) * (width - LEFT);
    context.fillStyle = colour("text");
    context.font = "12px system-ui, sans-serif";
    const every = Math.max(1, Math.ceil(16 / tall));
    heat.rows.forEach((length, row) => {
      if (row % every === 0) context.fillText(time(length), 4, HEIGHT - BELOW - row * tall);
    });
    for (const part of [0, 0.25, 0.5, 0.75]) {
      const at = from + (to - from) * part;
      context.fillText(moment(at, (to - from) / 20), place(at), HEIGHT - 4);
    }
    context.fillStyle = colour("heat");
    context.beginPath();
    context.rect(LEFT, 0, width - LEFT, HEIGHT);
    context.clip();
    for (const [column, row, count] of heat.cells) {
      const left = place(heat.start + column * heat.width);
      const right = place(heat.start + (column + 1) * heat.width);
      if (right < LEFT || left > width) continue;
      context.globalAlpha = 0.15 + (0.85 * Math.log1p(count)) / Math.log1p(most);
      context.fillRect(left, HEIGHT - BELOW - (row + 1) * tall, Math.max(1, right - left - 0.5), Math.max(1, tall - 0.5));
    }
  };
  const under = (event: MouseEvent) => {
    const { width, tall } = size();
    const [from, to] = view.range();
    const at = from + ((event.offsetX - LEFT) / (width - LEFT)) * (to - from);
    const column = Math.floor((at - heat.start) / heat.width);
    const row = Math.floor((HEIGHT - BELOW - event.offsetY) / tall);
    return { at, cell: heat.cells.find((cell) => cell[0] === column && cell[1] === row) };
  };
  canvas.addEventListener("mousemove", (event) => {
    const { at, cell } = under(event);
    const length = cell ? (heat.rows[cell[1]] ?? 0) : 0;
    told.textContent = cell ? `${counted(cell[2], "wait")} of ${time(length)} and longer near ${moment(at, 0.001)}` : label;
  });
  canvas.addEventListener("click", (event) => {
    const { at, cell } = under(event);
    if (cell) goTo(at);
  });
  follow(figure, draw);
  onTheme(draw);
  addEventListener("resize", draw);
  draw();
}
