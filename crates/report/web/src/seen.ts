// What follows the part of the time that is shown: at once if it can be seen, else when it comes into sight.

import * as view from "./view";

const draws = new Map<Element, () => void>();
const stale = new Set<Element>();
const seen = new Set<Element>();

function draw(element: Element): void {
  stale.delete(element);
  draws.get(element)?.();
}

const observer = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (entry.isIntersecting) seen.add(entry.target);
    else seen.delete(entry.target);
    if (entry.isIntersecting && stale.has(entry.target)) draw(entry.target);
  }
});

view.onChange(() => {
  for (const element of draws.keys()) {
    if (seen.has(element)) draw(element);
    else stale.add(element);
  }
});

// Everything is drawn on paper.
addEventListener("beforeprint", () => [...stale].forEach(draw));

/** Draws an element when another part of the time is shown. */
export function follow(element: Element, act: () => void): void {
  draws.set(element, act);
  observer.observe(element);
}
