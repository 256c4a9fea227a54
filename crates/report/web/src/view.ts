// The part of the time that is shown: one for all charts. Changes are applied once a frame.

const MOST_ZOOM = 1e-6;

let full: [number, number] = [0, 1];
let shown: [number, number] = [0, 1];
let waiting = false;
const listeners: (() => void)[] = [];

/** The whole time in seconds. */
export function setFull(length: number): void {
  full = [0, length];
  shown = [0, length];
}

export const range = (): readonly [number, number] => shown;

/** Calls when another part is shown. */
export function onChange(listener: () => void): void {
  listeners.push(listener);
}

export function zoom(from: number, to: number): void {
  const least = Math.max(MOST_ZOOM, (full[1] - full[0]) * 1e-7);
  const width = Math.min(Math.max(to - from, least), full[1] - full[0]);
  const start = Math.min(Math.max(from, full[0]), full[1] - width);
  shown = [start, start + width];
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    for (const listener of listeners) listener();
  });
}

export const reset = (): void => zoom(full[0], full[1]);

/** By a part of what is shown. */
export function pan(part: number): void {
  const by = (shown[1] - shown[0]) * part;
  zoom(shown[0] + by, shown[1] + by);
}

/** Shows more or less, around a moment that stays where it is. */
export function scale(factor: number, around = (shown[0] + shown[1]) / 2): void {
  zoom(around - (around - shown[0]) * factor, around + (shown[1] - around) * factor);
}

/** Keys of every chart. */
export function onKey(event: KeyboardEvent): void {
  const keys: Record<string, () => void> = {
    ArrowLeft: () => pan(-0.2),
    ArrowRight: () => pan(0.2),
    "+": () => scale(0.5),
    "=": () => scale(0.5),
    "-": () => scale(2),
    "0": reset,
    Escape: reset,
  };
  const act = keys[event.key];
  if (!act || event.ctrlKey || event.altKey || event.metaKey) return;
  event.preventDefault();
  act();
}
