// The page: verdict, charts over time, heat maps, stacks, waits, tables.

import * as around from "./around";
import * as charts from "./charts";
import * as differences from "./differences";
import { data, el, plain } from "./dom";
import * as findings from "./findings";
import * as flame from "./flame";
import * as heat from "./heat";
import * as tables from "./tables";
import * as theme from "./theme";
import type { Page, Report } from "./types";
import * as view from "./view";
import { moment, shortNames } from "./words";

function section(id: string, title: string): HTMLElement {
  return el("section", { id, "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title` }, title));
}

function start(): void {
  const page = plain<Page>("page");
  // A page of one run has no use for its name.
  if (page.runs.length > 1) {
    const names = shortNames(page.runs.map((run) => run.name));
    page.runs.forEach((run, number) => (run.name = names[number] ?? run.name));
  }
  const report = data<Report>("report");
  const { runs } = page;
  const several = runs.length > 1;
  const length = Math.max(0, ...runs.map((run) => run.length ?? 0));
  view.setFull(length > 0 ? length : 1);

  const lists = runs.flatMap((run) => around.lists(run, several));
  const goTo = (at: number) => {
    const half = Math.max(length / 40, 1e-3);
    view.zoom(at - half, at + half);
    around.goTo(lists, at);
  };

  const shown = el("output", { class: "note", id: "shown", "aria-live": "polite" });
  const told = () => {
    const [from, to] = view.range();
    shown.textContent = `shown: ${moment(from, (to - from) / 1000)} to ${moment(to, (to - from) / 1000)}`;
  };
  view.onChange(told);
  told();
  const button = (label: string, act: () => void, id: string) => el("button", { type: "button", id, click: act }, label);
  const tools = el(
    "div",
    { class: "tools", role: "toolbar", "aria-label": "Time shown" },
    button("\u2190", () => view.pan(-0.5), "earlier"),
    button("\u2192", () => view.pan(0.5), "later"),
    button("+", () => view.scale(0.5), "closer"),
    button("\u2212", () => view.scale(2), "wider"),
    button("all", view.reset, "all"),
    shown,
  );
  const main = el("main");
  const header = el(
    "header",
    {},
    el("h1", {}, page.title),
    ...runs.flatMap((run) => run.heading.map((line) => el("p", {}, several ? `${run.name}: ${line}` : line))),
    ...report.notes.map((note) => el("p", { class: "note" }, note)),
    button("light / dark", theme.toggle, "theme"),
  );
  document.body.append(header, main);

  const verdict = section("verdict", "Verdict");
  findings.show(report, page, verdict, (mark) => goTo(mark.at));
  main.append(verdict);

  const differ = section("differences", "Differences");
  differences.show(page, runs.map((run) => run.name), differ);
  if (differ.childElementCount > 1) main.append(differ);

  const time = section("time", "Over time");
  main.append(time);
  if (length > 0) {
    time.append(tools, el("p", { class: "note" }, "Drag to zoom, double-click to see all, shift and wheel to move."));
    const area = el("div", { class: "charts" });
    time.append(area);
    charts.show(runs, area, (mark) => goTo(mark.at));
  } else {
    time.append(el("p", {}, "Not known when anything happened: no charts."));
  }
  for (const run of runs) {
    const of = several ? ` (${run.name})` : "";
    if (run.missing.length > 0) time.append(el("p", { class: "note" }, `Not recorded${of}: ${run.missing.join("; ")}.`));
    if (run.zero.length > 0) time.append(el("p", { class: "note" }, `Zero all the time${of}: ${run.zero.join("; ")}.`));
  }

  const events = section("events", "Events");
  events.append(...lists.map(({ element }) => element));
  for (const run of runs) {
    const of = several ? `, ${run.name}` : "";
    if (run.latency) heat.show(`Waits by length${of}`, run.latency, time, goTo);
    if (run.flame) flame.show(`Kernel stacks${of}`, run.flame.root, run.flame.unit, events);
  }
  if (events.childElementCount > 1) main.append(events);

  const nodes = section("nodes", "From node to node");
  tables.matrices(report, nodes);
  if (nodes.childElementCount > 1) main.append(nodes);

  const exact = section("tables", "Tables");
  tables.show(report, exact);
  main.append(exact);

  const licences = el("details", {}, el("summary", {}, "Licences"), el("pre", {}, page.licences));
  document.body.append(el("footer", {}, el("p", {}, `mmtwin ${page.version}`), licences));
  document.documentElement.dataset["ready"] = "true";
}

start();
