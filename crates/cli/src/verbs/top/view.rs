//! The screen: a strip of pressure over time, what the machine does, and tables.

use super::model::{Focus, Model, Point};
use super::{tables, text};
use mmtwin_report::units;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

/// Smallest screen.
const LEAST: (u16, u16) = (60, 12);
/// Columns of the labels of the strip and of the lines below it.
const LABEL: usize = 11;
/// Columns behind the strip.
const NOTE: usize = 22;
/// From so many columns on, two tables are beside each other.
const SIDE_BY_SIDE: u16 = 160;
/// Columns of the table of nodes at most: its names are short.
const NODES: u16 = 90;
/// Shares, in percent, from which a row is marked, and marked more.
const MARKED: [f64; 2] = [10.0, 30.0];

/// How a line is to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// As it is.
    Plain,
    /// Less important.
    Faint,
    /// The title.
    Title,
    /// A head of columns.
    Head,
    /// The head of the table that keys move in.
    HeadFocused,
    /// The chosen row.
    Chosen,
    /// A share that matters.
    Marked,
    /// A share that matters much.
    Bad,
}

impl Tone {
    /// Of a share in percent.
    pub fn of(share: Option<f64>) -> Tone {
        match share {
            Some(share) if share >= MARKED[1] => Tone::Bad,
            Some(share) if share >= MARKED[0] => Tone::Marked,
            _ => Tone::Plain,
        }
    }
}

/// What is drawn on.
pub struct Canvas<'a> {
    /// Its cells.
    pub buffer: &'a mut Buffer,
    /// It shows colours.
    pub colour: bool,
}

impl Canvas<'_> {
    /// Writes a line of an area, as far as it fits. Characters that control terminals are omitted.
    pub fn line(&mut self, area: Rect, row: usize, text: &str, tone: Tone) {
        let Ok(row) = u16::try_from(row) else { return };
        if row >= area.height {
            return;
        }
        let style = self.style(tone);
        let y = area.y + row;
        if matches!(tone, Tone::Title | Tone::Chosen) {
            self.buffer.set_style(Rect { y, height: 1, ..area }, style);
        }
        let shown: String = text.chars().filter(|c| !c.is_control()).collect();
        self.buffer.set_stringn(area.x, y, shown, area.width.into(), style);
    }

    fn style(&self, tone: Tone) -> Style {
        let colour = |style: Style, colour| if self.colour { style.fg(colour) } else { style };
        let plain = Style::new();
        match tone {
            Tone::Plain => plain,
            Tone::Faint => plain.add_modifier(Modifier::DIM),
            Tone::Title | Tone::Chosen => plain.add_modifier(Modifier::REVERSED),
            Tone::Head => colour(plain.add_modifier(Modifier::UNDERLINED), Color::Cyan),
            Tone::HeadFocused => colour(plain.add_modifier(Modifier::UNDERLINED | Modifier::BOLD), Color::Cyan),
            Tone::Marked => colour(plain, Color::Yellow),
            Tone::Bad => colour(plain.add_modifier(Modifier::BOLD), Color::Red),
        }
    }
}

/// Draws all of it.
pub fn view(model: &Model, canvas: &mut Canvas<'_>, area: Rect) {
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let (columns, rows) = LEAST;
        return canvas.line(area, 0, &format!("too small: top needs {columns}x{rows}"), Tone::Plain);
    }
    canvas.line(area, 0, &title(model, area.width.into()), Tone::Title);
    let body = Rect { y: area.y + 1, height: area.height - 2, ..area };
    let foot = Rect { y: area.bottom() - 1, height: 1, ..area };
    canvas.line(foot, 0, &footer(model, area.width.into()), Tone::Faint);
    if model.help {
        help(model, canvas, body);
    } else if model.opened.is_some() {
        opened(model, canvas, body);
    } else {
        overview(model, canvas, body);
    }
}

fn title(model: &Model, width: usize) -> String {
    let about = &model.about;
    let lost = model.snapshot.lost;
    let events = match &about.no_events {
        Some(_) => "counters only (? says why)".to_string(),
        None if lost == 0 => "events and counters".to_string(),
        None => format!("{} lost", units::counted(lost, "event")),
    };
    let frozen = model.frozen.is_some().then(|| "FROZEN".to_string());
    let memory = model.snapshot.system.total.map(|bytes| text::bytes(Some(bytes)));
    let parts = [Some("mmtwin top".to_string()), frozen, Some(events), Some(format!("every {:?}", about.interval))];
    let machine = [
        Some(format!("Linux {}", about.kernel)),
        Some(units::counted(about.cpus.into(), "CPU")),
        Some(units::counted(model.snapshot.nodes.len() as u64, "node")),
        memory,
    ];
    text::fitting(parts.into_iter().chain(machine).flatten(), "  ", width)
}

fn footer(model: &Model, width: usize) -> String {
    if model.typing.is_some() {
        return format!("filter: {}_  Enter apply  Esc cancel", model.filter);
    }
    if let Some(message) = &model.message {
        return message.clone();
    }
    let filter = format!("/ filter {}", model.filter);
    let sort = format!("s sort: {}{}", model.sort.word(), if model.reversed { " reversed" } else { "" });
    let keys = match model.opened {
        Some(_) => vec!["q quit", "Esc back", "space freeze", "w write"],
        None => {
            vec!["q quit", "? help", filter.trim_end(), &sort, "Enter open", "space freeze", "w write", "Tab table"]
        }
    };
    text::fitting(keys.into_iter().map(str::to_string), "  ", width)
}

fn overview(model: &Model, canvas: &mut Canvas<'_>, area: Rect) {
    let mut at = 0;
    for (i, label) in ["memory some", "memory full", "io some"].into_iter().enumerate() {
        let (line, tone) = strip(model, label, i, area.width.into());
        canvas.line(area, at, &line, tone);
        at += 1;
    }
    for line in machine(model, area.width.into()) {
        canvas.line(area, at, &line, Tone::Plain);
        at += 1;
    }
    let rows = usize::from(area.height);
    // The head and some rows; a quarter of the rest at most.
    let nodes = model.snapshot.nodes.len().clamp(1, (rows.saturating_sub(at) / 4).max(1)) + 1;
    let part = |from: usize, height: usize, x: u16, width: u16| Rect {
        x,
        y: area.y + from as u16,
        width,
        height: height.min(rows.saturating_sub(from)) as u16,
    };
    tables::nodes(model, canvas, part(at, nodes, area.x, area.width.min(NODES)));
    at += nodes;
    let left = rows.saturating_sub(at);
    let (cgroups, processes) = (model.cgroups(), model.processes());
    if area.width >= SIDE_BY_SIDE {
        let half = area.width / 2 - 1;
        tables::cgroups(model, &cgroups, canvas, part(at, left, area.x, half));
        tables::processes(model, &processes, canvas, part(at, left, area.x + half + 2, area.width - half - 2));
    } else {
        // The table that keys move in has the odd row, and each has what the other does not need.
        let half = if model.focus == Focus::Cgroups { left.div_ceil(2) } else { left / 2 };
        let needed = |rows: usize| rows.max(1) + 1;
        let upper = half.max(left.saturating_sub(needed(processes.len()))).min(needed(cgroups.len())).max(left.min(2));
        tables::cgroups(model, &cgroups, canvas, part(at, upper, area.x, area.width));
        tables::processes(model, &processes, canvas, part(at + upper, left - upper, area.x, area.width));
    }
}

/// A row of the strip: pressure over time, now, and the height of a full block.
fn strip(model: &Model, label: &str, which: usize, width: usize) -> (String, Tone) {
    let room = width.saturating_sub(LABEL + NOTE + 2);
    let points: Vec<&Point> = model.strip.iter().skip(model.strip.len().saturating_sub(room)).collect();
    let full = text::full(points.iter().filter_map(|point| point[which]).fold(0.0, f64::max));
    let blocks: String = points.iter().map(|point| text::block(point[which], full)).collect();
    let now = points.last().and_then(|point| point[which]);
    let line = format!("{label:<LABEL$} {blocks:>room$} {:>7} of {full:.0} %", text::percent(now));
    (line, Tone::of(now))
}

/// What the machine does, a line for each subject, with what matters most first.
fn machine(model: &Model, width: usize) -> [String; 4] {
    let s = &model.snapshot.system;
    let line = |label: &str, parts: &[String]| {
        let parts = text::fitting(parts.iter().cloned(), ", ", width.saturating_sub(LABEL + 1));
        format!("{label:<LABEL$} {parts}")
    };
    let rate = |value| text::per_second(text::rate(value));
    let pages = |value| text::per_second(text::pages(value));
    let reclaim = |who: &str, freed, scanned: Option<f64>| match scanned {
        Some(scanned) if scanned > 0.0 => format!("{who} {} of {}", pages(freed), pages(Some(scanned))),
        _ => format!("{who} {}", pages(scanned)),
    };
    let hint_local = s.hint_local.map(|share| format!(" ({} local)", text::percent(Some(share)))).unwrap_or_default();
    [
        line(
            "memory",
            &[
                format!("{} available", text::bytes(s.available)),
                format!("OOM kills {}", rate(s.kills)),
                format!("vmalloc {}", text::bytes(s.vmalloc)),
                format!("purges {}", rate(s.purges)),
                format!("areas purged {}", rate(s.purged)),
            ],
        ),
        line(
            "reclaim",
            &[
                reclaim("direct", s.stolen_direct, s.scanned_direct),
                reclaim("cgroup", s.stolen_cgroup, s.scanned_cgroup),
                reclaim("kswapd", s.stolen_kswapd, s.scanned_kswapd),
                format!("allocstalls {}", rate(s.allocstalls)),
                format!("compact stalls {}", rate(s.compact_stalls)),
            ],
        ),
        line(
            "refaults",
            &[
                format!("anon {}", rate(s.refaults_anon)),
                format!("file {}", rate(s.refaults_file)),
                format!("swap in {}", pages(s.swapped_in)),
                format!("out {}", pages(s.swapped_out)),
                format!("major faults {}", rate(s.major_faults)),
            ],
        ),
        line(
            "NUMA",
            &[
                format!("local {}", text::percent(s.local)),
                format!("hint faults {}{hint_local}", rate(s.hint_faults)),
                format!("migrated {}", pages(s.migrated)),
                format!("task moves {}", rate(s.moves)),
            ],
        ),
    ]
}

fn opened(model: &Model, canvas: &mut Canvas<'_>, area: Rect) {
    let Some(details) = &model.opened else { return };
    canvas.line(area, 0, &details.title, Tone::HeadFocused);
    if let (Focus::Processes, Ok(pid)) = (details.of, details.key.parse::<i32>())
        && let Some(waited) = model.snapshot.processes.iter().find(|row| row.pid == pid).and_then(|row| row.waited)
    {
        let share = |ns: u64| text::percent(model.snapshot.seconds.map(|seconds| ns as f64 / 1e7 / seconds));
        let waits = mmtwin_analysis::live::WaitReason::ALL.map(|why| (why, waited.time[why as usize]));
        let waits: Vec<String> =
            waits.iter().filter(|(_, ns)| *ns > 0).map(|(why, ns)| format!("{} {}", why.name(), share(*ns))).collect();
        let said =
            if waits.is_empty() { "waited for nothing".to_string() } else { format!("waited: {}", waits.join(", ")) };
        canvas.line(area, 1, &said, Tone::Plain);
    }
    let head = format!("{:<44} {:>20} {:>12}", "COUNTER", "value", "per second");
    canvas.line(area, 2, &head, Tone::Head);
    if details.counters.is_empty() {
        return canvas.line(area, 3, "no counters: it is gone, or not sampled yet", Tone::Faint);
    }
    for (i, (name, value, rate)) in details.counters.iter().skip(details.scroll).enumerate() {
        // Sizes have no rate.
        let rate = rate.map(|rate| text::rate(Some(rate))).unwrap_or_default();
        let value = value.map_or(text::UNKNOWN.into(), |value| value.to_string());
        canvas.line(area, i + 3, &format!("{:<44} {value:>20} {rate:>12}", text::tail(name, 44)), Tone::Plain);
    }
}

fn help(model: &Model, canvas: &mut Canvas<'_>, area: Rect) {
    let events = match &model.about.no_events {
        Some(why) => format!("No events: {why}"),
        None => "Events are traced in an instance of mmtwin's own.".into(),
    };
    let lines = [
        ("q, Ctrl-C", "quit"),
        ("space", "freeze the screen, or show the newest again"),
        ("s, r", "sort by waited, faults, usage, name; reverse"),
        ("/", "filter by a part of a cgroup's path, a name or a pid; Esc clears it"),
        ("Tab, arrows", "other table; choose a row"),
        ("Enter, Esc", "open the chosen cgroup or process; back"),
        ("w", "write what was seen in the last minutes as a recording"),
        ("Ctrl-Z", "stop; fg continues"),
    ];
    let mut at = 0;
    for (keys, what) in lines {
        canvas.line(area, at, &format!("{keys:<12} {what}"), Tone::Plain);
        at += 1;
    }
    let words = [
        "",
        "PSI some, full: share of the time in which some or all tasks waited for memory",
        "waited: time in reclaim, compaction and throttling, 100 % for each task; needs events",
        "reclaim: bytes that were freed of bytes that were scanned",
        "n/a: this kernel does not count it, or it needs events",
        "",
        &events,
    ];
    for line in words {
        for part in wrapped(line, area.width.into()) {
            canvas.line(area, at, &part, Tone::Plain);
            at += 1;
        }
    }
}

/// A text in lines of a width, broken between words.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.len() - 1;
        let length = lines[last].chars().count();
        if length > 0 && length + 1 + word.chars().count() > width {
            lines.push(word.into());
        } else {
            let gap = if length > 0 { " " } else { "" };
            lines[last].push_str(&format!("{gap}{word}"));
        }
    }
    lines
}
