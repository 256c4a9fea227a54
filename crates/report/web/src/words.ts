// Numbers for people: three significant digits, with the unit that fits.

import type { Unit } from "./types";

function three(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 99.95) return value.toFixed(0);
  if (size >= 9.995) return value.toFixed(1);
  return size >= 0.9995 ? value.toFixed(2) : String(Number(value.toPrecision(2)));
}

function scaled(value: number, units: [number, string][]): string {
  let chosen = units[0] ?? [1, ""];
  for (const unit of units) if (Math.abs(value) >= unit[0] * 0.9995) chosen = unit;
  return `${three(value / chosen[0])} ${chosen[1]}`.trimEnd();
}

const BYTES: [number, string][] = [
  [1, "B"],
  [2 ** 10, "KiB"],
  [2 ** 20, "MiB"],
  [2 ** 30, "GiB"],
  [2 ** 40, "TiB"],
];
const COUNTS: [number, string][] = [
  [1, ""],
  [1e3, "k"],
  [1e6, "M"],
  [1e9, "G"],
  [1e12, "T"],
];
const TIMES: [number, string][] = [
  [1e-9, "ns"],
  [1e-6, "us"],
  [1e-3, "ms"],
  [1, "s"],
];

/** Seconds. */
export const time = (seconds: number): string => (seconds === 0 ? "0 s" : scaled(seconds, TIMES));

export function value(number: number | null | undefined, unit: Unit): string {
  if (number == null) return "n/a";
  switch (unit) {
    case "%":
      return `${three(number)} %`;
    case "B":
      return scaled(number, BYTES);
    case "B/s":
      return `${scaled(number, BYTES)}/s`;
    case "/s":
      return `${scaled(number, COUNTS)}/s`;
    case "tasks":
      return three(number);
  }
}

export const percent = (share: number): string => `${three(share * 100)} %`;

/** A time of the axis, with the digits that the width of the view needs. */
export function moment(seconds: number, step: number): string {
  const digits = Math.min(6, Math.max(0, -Math.floor(Math.log10(step || 1))));
  return `${seconds.toFixed(digits)} s`;
}

export const counted = (count: number, one: string, more = `${one}s`): string =>
  `${count.toLocaleString("en-US")} ${count === 1 ? one : more}`;

/** Names of files without directories and endings, if they still differ. */
export function shortNames(names: string[]): string[] {
  const short = names.map((name) => name.replace(/.*\//, "").replace(/(\.(tar|mmt|dat|txt|gz|zst|xz|bz2))+$/, ""));
  return short.every((name) => name) && new Set(short).size === names.length ? short : names;
}
