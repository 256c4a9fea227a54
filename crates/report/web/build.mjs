// Bundles src/ into dist/: the script, the style, their hashes for a Content-Security-Policy, and licences.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";

const out = process.argv[2] ?? "dist";
mkdirSync(out, { recursive: true });
const common = { bundle: true, minify: true, write: false, legalComments: "none", charset: "ascii", logLevel: "warning" };
const bundle = async (options) => (await build({ ...common, ...options })).outputFiles[0].text.trimEnd();

const script = await bundle({ entryPoints: ["src/main.ts"], format: "iife", target: "es2022" });
const style = await bundle({ entryPoints: ["src/page.css"], target: "es2022" });
for (const [text, end] of [[script, "</script"], [script, "<!--"], [style, "</style"]]) {
  if (text.includes(end)) throw new Error(`${end} would end the element`);
}
const hash = (text) => `sha256-${createHash("sha256").update(text).digest("base64")}`;
const uplot = JSON.parse(readFileSync("node_modules/uplot/package.json", "utf8"));
const licence = readFileSync("node_modules/uplot/LICENSE", "utf8").trim();

writeFileSync(`${out}/page.js`, script);
writeFileSync(`${out}/page.css`, style);
writeFileSync(`${out}/hashes.txt`, `${hash(script)} ${hash(style)}\n`);
writeFileSync(`${out}/licences.txt`, `uPlot ${uplot.version}\n\n${licence}\n`);
