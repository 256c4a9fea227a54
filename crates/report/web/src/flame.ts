// Flame graph: a row for each depth of calls; a click shows one function and what it called.

import { el } from "./dom";
import type { Frame } from "./types";
import { counted, percent, time } from "./words";

/** Narrower parts of what is shown are not drawn. */
const LEAST = 0.002;
const ROW = 20;

export function show(title: string, root: Frame, unit: "ns" | "times", into: HTMLElement): void {
  const words = (value: number) => (unit === "ns" ? time(value / 1e9) : counted(value, "time"));
  const told = el("output", { class: "note" });
  const area = el("div", { class: "flame" });
  into.append(
    el("figure", { class: "chart", "data-flame": root.value }, el("figcaption", {}, el("h3", {}, title), told), area),
  );
  const draw = (shown: Frame) => {
    let deepest = 0;
    area.replaceChildren();
    const add = (frame: Frame, left: number, width: number, depth: number) => {
      if (width < LEAST || depth > 300) return;
      deepest = Math.max(deepest, depth);
      const what = `${frame.name}: ${words(frame.value)}, ${percent(frame.value / root.value)}`;
      const button = el("button", { type: "button", title: what, class: `shade-${hash(frame.name) % 6}` }, frame.name);
      button.style.left = `${left * 100}%`;
      button.style.width = `${width * 100}%`;
      button.style.top = `${depth * ROW}px`;
      button.addEventListener("click", () => draw(frame === shown ? root : frame));
      button.addEventListener("focus", () => (told.textContent = what));
      button.addEventListener("mouseenter", () => (told.textContent = what));
      area.append(button);
      let from = left;
      for (const call of frame.calls ?? []) {
        const part = (width * call.value) / (frame.value || 1);
        add(call, from, part, depth + 1);
        from += part;
      }
    };
    add(shown, 0, 1, 0);
    area.style.height = `${(deepest + 1) * ROW}px`;
    told.textContent = `${shown.name}: ${words(shown.value)}${shown === root ? "" : ". A click on the top shows all."}`;
  };
  draw(root);
}

function hash(text: string): number {
  let sum = 7;
  for (let i = 0; i < text.length; i++) sum = (sum * 31 + text.charCodeAt(i)) % 9973;
  return sum;
}
