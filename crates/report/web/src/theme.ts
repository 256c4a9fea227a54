// Light or dark: as the system says, until the reader chooses.

const listeners: (() => void)[] = [];
let colours: CSSStyleDeclaration | null = null;

/** A colour of the style, by its name there. */
export function colour(name: string): string {
  colours ??= getComputedStyle(document.documentElement);
  return colours.getPropertyValue(`--${name}`).trim();
}

/** The colour of the n-th line of a chart. */
export const lineColour = (n: number): string => colour(`line-${n % 8}`);

export function onTheme(listener: () => void): void {
  listeners.push(listener);
}

export const isDark = (): boolean => {
  const chosen = document.documentElement.dataset["theme"];
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};

export function toggle(): void {
  document.documentElement.dataset["theme"] = isDark() ? "light" : "dark";
  for (const listener of listeners) listener();
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const listener of listeners) listener();
});
