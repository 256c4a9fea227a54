// The verdict: findings, worst first, with what they cost, what would help, and when they were worst.

import { el } from "./dom";
import type { Finding, Mark, Page, Report } from "./types";
import { moment, percent, time } from "./words";

/** From this severity on a finding is bad news; below the other one nothing needs to be done. */
const BAD = 80;
const HARMLESS = 20;

function cost(finding: Finding): string[] {
  const parts = [];
  if (finding.cost) {
    const { waited, elapsed, share, by } = finding.cost;
    const whole = elapsed === null || share === null ? "" : ` of ${time(elapsed / 1e9)} (${percent(share)})`;
    const who = by.map(({ name }) => name).join(", ");
    parts.push(`tasks waited ${time(waited / 1e9)}${whole}${who && `: ${who}`}`);
  }
  if (finding.pressure) {
    const { of, memory_some, memory_full, io_some } = finding.pressure;
    const shares = [
      ["memory some", memory_some],
      ["memory full", memory_full],
      ["io some", io_some],
    ] as const;
    const known = shares.filter(([, share]) => share !== null).map(([name, share]) => `${name} ${percent(share ?? 0)}`);
    if (known.length > 0) parts.push(`PSI of ${of || "the system"}: ${known.join(", ")}`);
  }
  return parts;
}

export function show(report: Report, page: Page, into: HTMLElement, goTo: (mark: Mark) => void): void {
  const several = page.runs.length > 1;
  const findings = report.findings ?? [];
  if (findings.length === 0) {
    into.append(el("p", {}, "No finding: no rule applies to what was recorded."));
    return;
  }
  const items = findings.map((finding) => {
    const level = finding.severity >= BAD ? "bad" : finding.severity < HARMLESS ? "harmless" : "notable";
    const input = report.inputs[finding.input];
    const run = page.runs[input?.column ?? 0];
    const marks = several ? [] : (run?.marks ?? []).filter((mark) => mark.key === finding.key);
    const buttons = marks.slice(0, 5).map((mark) =>
      el("button", { type: "button", title: mark.what, "data-mark": mark.at, click: () => goTo(mark) }, `at ${moment(mark.at, 0.001)}`),
    );
    const line = (label: string, words: string | undefined) =>
      words ? el("p", {}, `${label}: `, words.startsWith("mmtwin ") ? el("code", {}, words) : words) : null;
    return el(
      "li",
      { class: level, "data-finding": finding.key },
      el("p", { class: "sentence" }, several ? `${run?.name ?? ""}: ` : "", finding.sentence, " ", ...buttons),
      ...cost(finding).map((words) => el("p", {}, words)),
      finding.detail && el("p", {}, finding.detail),
      line("fix", finding.fix),
      line("why", finding.next),
      line("more", finding.command),
    );
  });
  into.append(el("ol", { class: "findings" }, ...items));
}
