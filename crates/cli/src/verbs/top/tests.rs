//! Keys and drawing, without a terminal.

use super::model::{About, Focus, Model, POINTS, Sort};
use super::update::{Action, update};
use super::view::{Canvas, view};
use mmtwin_analysis::live::{Cgroup, Node, Pressure, Process, Snapshot, System, WaitReason, Waited};
use mmtwin_event::container::Container;
use mmtwin_host::top::Opened;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Color;
use std::time::Duration;

const GIB: u64 = 1 << 30;

/// A machine under pressure: a cgroup at its limit, and another that does nothing.
fn snapshot(memory_some: f64) -> Snapshot {
    let mut waited = Waited { begun: 24, reclaimed: 2560, ..Waited::default() };
    waited.time[WaitReason::Cgroup as usize] = 426_000_000;
    let cgroup = |key: &str, some, usage| Cgroup { key: key.into(), some, usage: Some(usage), ..Cgroup::default() };
    let process = |pid, comm: &str, resident| Process {
        pid,
        comm: comm.into(),
        waited: Some(Waited::default()),
        share: Some(0.0),
        resident: Some(resident),
        ..Process::default()
    };
    Snapshot {
        at: 1,
        seconds: Some(1.0),
        pressure: Pressure { memory_some: Some(memory_some), memory_full: Some(3.0), ..Pressure::default() },
        system: System {
            total: Some(24 * GIB),
            available: Some(17 * GIB),
            stolen_kswapd: Some(256.0),
            scanned_kswapd: Some(512.0),
            local: Some(99.5),
            ..System::default()
        },
        nodes: vec![Node { id: 0, free: Some(262_144), awake: Some(41.0), ..Node::default() }],
        cgroups: vec![
            cgroup("/idle", Some(0.0), 2 * GIB),
            Cgroup { limit: Some(GIB), hits: Some(12.0), ..cgroup("/web", Some(42.3), GIB) },
        ],
        processes: vec![
            process(9, "idle", 4096),
            Process {
                waited: Some(waited),
                share: Some(42.6),
                cgroup: Some("/web".into()),
                ..process(7, "server", 1 << 20)
            },
        ],
        lost: 0,
    }
}

fn model() -> Model {
    let about = About { kernel: "6.18.4".into(), cpus: 2, interval: Duration::from_secs(1), no_events: None };
    let mut model = Model::new(about);
    model.sampled(snapshot(12.5));
    model
}

fn press(model: &mut Model, code: KeyCode) -> Action {
    update(model, KeyEvent::new(code, KeyModifiers::NONE))
}

fn type_in(model: &mut Model, text: &str) {
    text.chars().for_each(|c| assert_eq!(press(model, KeyCode::Char(c)), Action::Draw));
}

fn drawn(model: &Model, columns: u16, rows: u16, colour: bool) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal
        .draw(|frame| {
            let area = frame.area();
            view(model, &mut Canvas { buffer: frame.buffer_mut(), colour }, area);
        })
        .unwrap();
    terminal.backend().buffer().clone()
}

fn lines(model: &Model, columns: u16, rows: u16) -> Vec<String> {
    let buffer = drawn(model, columns, rows, false);
    let line = |y| (0..columns).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_string();
    (0..rows).map(line).collect()
}

#[test]
fn a_small_screen_has_everything() {
    let lines = lines(&model(), 80, 24);
    assert_eq!(lines[0], "mmtwin top  events and counters  every 1s  Linux 6.18.4  2 CPUs  1 node");
    assert!(lines[1].starts_with("memory some") && lines[1].ends_with("▅  12.5 % of 20 %"), "{}", lines[1]);
    assert!(lines[3].ends_with("·     n/a of 1 %"), "{}", lines[3]);
    for part in [
        "memory      17.0 GiB available, OOM kills n/a, vmalloc n/a, purges n/a",
        "reclaim     direct n/a, cgroup n/a, kswapd 1.00 MiB/s of 2.00 MiB/s",
        "node 0    1.00 GiB       n/a       n/a     n/a 41.0 %        n/a    n/a      n/a",
        "/web                    42.3 %    n/a    n/a 1.00 GiB 1.00 GiB     12        n/a",
        "      7 server                    42.6 % cgroup limit        n/a    n/a 1.00 MiB",
        "q quit  ? help  / filter  s sort: waited  Enter open  space freeze  w write",
    ] {
        let part: String = part.chars().take(80).collect();
        assert!(lines.iter().any(|line| line.starts_with(&part)), "{part}\n{}", lines.join("\n"));
    }
    let place = |text: &str| lines.iter().position(|line| line.contains(text));
    assert!(place("/web") < place("/idle") && place("server") < place("9 idle"), "who waits comes first");
}

#[test]
fn a_wide_screen_has_tables_beside_each_other() {
    let wide = lines(&model(), 240, 30);
    let both = wide.iter().find(|line| line.starts_with("/web")).expect("the cgroup");
    for part in ["server", "cgroup limit", "10.0 MiB", "/web"] {
        assert!(both[20..].contains(part), "{part}: {both}");
    }
    assert!(lines(&model(), 120, 30).iter().any(|line| line.contains("waits/s") && line.ends_with("cgroup")));
}

#[test]
fn any_size_is_drawn() {
    let mut model = model();
    for help in [false, true] {
        model.help = help;
        for (columns, rows) in [(1, 1), (59, 24), (60, 12), (80, 11), (80, 12), (300, 80), (500, 13)] {
            let lines = lines(&model, columns, rows);
            assert_eq!(lines.len(), usize::from(rows));
            if columns >= 20 && (columns < 60 || rows < 12) {
                assert_eq!(lines[0], "too small: top needs 60x12");
            }
        }
    }
    model.help = false;
    model.snapshot = Snapshot::default();
    assert!(lines(&model, 80, 24).iter().any(|line| line == "no memory cgroups"));
}

#[test]
fn rows_are_sorted_by_what_was_asked_for() {
    let mut model = model();
    let mut orders = Vec::new();
    for _ in 0..4 {
        orders.push((model.sort, model.keys(Focus::Cgroups)[0].clone(), model.keys(Focus::Processes)[0].clone()));
        press(&mut model, KeyCode::Char('s'));
    }
    let first = |sort, cgroup: &str, pid: &str| (sort, cgroup.to_string(), pid.to_string());
    let expected = [
        first(Sort::Waited, "/web", "7"),
        first(Sort::Faults, "/web", "7"),
        first(Sort::Usage, "/idle", "7"),
        first(Sort::Name, "/idle", "9"),
    ];
    assert_eq!(orders, expected);
    press(&mut model, KeyCode::Char('r'));
    assert_eq!(model.keys(Focus::Cgroups), ["/idle", "/web"]);
}

#[test]
fn a_filter_keeps_rows_with_it_in_a_name() {
    let mut model = model();
    type_in(&mut model, "/WEB");
    assert!(lines(&model, 80, 24)[23].starts_with("filter: WEB_"));
    assert_eq!((model.keys(Focus::Cgroups), model.keys(Focus::Processes)), (vec!["/web".into()], vec!["7".into()]));
    press(&mut model, KeyCode::Enter);
    type_in(&mut model, "/q");
    assert!(lines(&model, 80, 24).contains(&"nothing fits the filter WEBq".to_string()), "q is a letter here");
    press(&mut model, KeyCode::Backspace);
    press(&mut model, KeyCode::Char('x'));
    press(&mut model, KeyCode::Esc);
    assert_eq!((model.filter.as_str(), model.typing.is_none()), ("WEB", true), "as it was before");
    press(&mut model, KeyCode::Esc);
    assert_eq!(model.keys(Focus::Cgroups).len(), 2);
}

#[test]
fn a_frozen_screen_stays_and_loses_nothing() {
    let mut model = model();
    press(&mut model, KeyCode::Char(' '));
    let before = lines(&model, 80, 24);
    assert!(before[0].starts_with("mmtwin top  FROZEN  "));
    (0..2 * POINTS).for_each(|_| model.sampled(snapshot(99.0)));
    assert_eq!(lines(&model, 80, 24), before);
    press(&mut model, KeyCode::Char(' '));
    assert!(lines(&model, 80, 24)[1].ends_with("99.0 % of 100 %"));
    assert_eq!(model.strip.len(), POINTS, "in bounded memory");
}

#[test]
fn the_chosen_row_is_opened_wherever_it_is_sorted() {
    let mut model = model();
    press(&mut model, KeyCode::Down);
    assert_eq!(model.chosen[0].as_deref(), Some("/idle"));
    press(&mut model, KeyCode::Char('s'));
    press(&mut model, KeyCode::Char('s'));
    assert_eq!(press(&mut model, KeyCode::Enter), Action::Open(Some(Opened::Cgroup("/idle".into()))));
    model.opened.as_mut().unwrap().counters = (0..40).map(|i| (format!("counter{i}"), Some(i), Some(0.5))).collect();
    (0..3).for_each(|_| _ = press(&mut model, KeyCode::Down));
    let shown = lines(&model, 80, 24);
    assert!(shown[1] == "cgroup /idle" && shown[4].starts_with("counter3 ") && shown[4].ends_with("0.5"), "{shown:?}");
    assert_eq!(press(&mut model, KeyCode::Enter), Action::Draw, "one at a time");
    assert_eq!(press(&mut model, KeyCode::Esc), Action::Open(None));
    press(&mut model, KeyCode::Tab);
    assert_eq!(press(&mut model, KeyCode::Enter), Action::Open(Some(Opened::Process(7))));
    assert_eq!(lines(&model, 80, 24)[2], "waited: cgroup limit 42.6 %");
}

#[test]
fn a_long_table_scrolls_with_the_chosen_row() {
    let mut model = model();
    let cgroup = |i| Cgroup { key: format!("/c{i:02}"), ..Cgroup::default() };
    model.snapshot.cgroups = (0..50).map(cgroup).collect();
    assert!(!lines(&model, 80, 24).iter().any(|line| line.starts_with("/c30")));
    (0..3).for_each(|_| _ = press(&mut model, KeyCode::PageDown));
    assert!(lines(&model, 80, 24).iter().any(|line| line.starts_with("/c30")));
    press(&mut model, KeyCode::End);
    assert_eq!(model.chosen[0].as_deref(), Some("/c49"));
    press(&mut model, KeyCode::Home);
    assert_eq!(model.chosen[0].as_deref(), Some("/c00"));
    model.snapshot.cgroups.clear();
    assert_eq!(press(&mut model, KeyCode::Enter), Action::Draw, "nothing to open");
}

#[test]
fn a_container_has_its_name_where_that_is_known() {
    let (mut model, id) = (model(), "0123456789abcdef".repeat(4));
    model.snapshot.cgroups = vec![Cgroup { key: format!("/docker/{id}"), ..Cgroup::default() }];
    assert!(lines(&model, 80, 24).iter().any(|line| line.starts_with("docker:0123456789ab")));
    model.containers.0.insert(id, Container { name: "web-1".into(), pod: None });
    assert!(lines(&model, 80, 24).iter().any(|line| line.starts_with("docker:web-1 ")));
    model.filter = "WEB-".into();
    assert_eq!(model.cgroups().len(), 1);
}

#[test]
fn colours_are_only_there_where_they_are_wanted() {
    let model = model();
    let colours = |colour| {
        let buffer = drawn(&model, 80, 24, colour);
        let mut colours: Vec<Color> = buffer.content().iter().flat_map(|cell| [cell.fg, cell.bg]).collect();
        colours.sort_by_key(|colour| format!("{colour:?}"));
        colours.dedup();
        colours
    };
    assert_eq!(colours(false), [Color::Reset]);
    assert_eq!(colours(true), [Color::Cyan, Color::Red, Color::Reset, Color::Yellow]);
}

#[test]
fn names_cannot_control_the_terminal() {
    let mut model = model();
    model.snapshot.cgroups[1].key = "/\x1b[31mred\n\u{9b}2J/🦀é".into();
    let lines = lines(&model, 80, 24);
    assert!(lines.iter().any(|line| line.starts_with("/[31mred2J/🦀")), "{}", lines.join("\n"));
    type_in(&mut model, "/\u{7f}");
    press(&mut model, KeyCode::Enter);
}

#[test]
fn keys_ask_for_what_the_loop_does() {
    let mut model = model();
    let control = |model: &mut Model, c| update(model, KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL));
    assert_eq!(press(&mut model, KeyCode::Char('w')), Action::Write);
    assert_eq!((control(&mut model, 'z'), control(&mut model, 'c')), (Action::Suspend, Action::Quit));
    press(&mut model, KeyCode::Char('?'));
    let help = lines(&model, 80, 24);
    assert!(help.iter().any(|line| line.starts_with("space        freeze")), "{help:?}");
    press(&mut model, KeyCode::Esc);
    model.about.no_events = Some("user 7 has no access to /sys/kernel/tracing".into());
    assert!(lines(&model, 80, 24)[0].contains("counters only"));
    model.message = Some("written: a.mmt".into());
    assert_eq!(lines(&model, 80, 24)[23], "written: a.mmt");
    assert_eq!(press(&mut model, KeyCode::Char('q')), Action::Quit);
    assert_eq!(model.message, None);
}
