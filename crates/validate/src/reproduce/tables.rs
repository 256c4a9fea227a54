//! Tables of a reproduction: metrics beside the published ones, pairs of rows, histograms, further figures of the runs, and
//! quantities that the published figures do not identify.

use super::{More, Reproduced, Reproduction};
use mmtwin_report::model::{self, Body, Cell, Column, Gain, Metric, Na, Table};
use mmtwin_report::statistics::{self, Interval};
use mmtwin_scenario::published::{self, Better, Pair};

impl Reproduction {
    /// Parameters, one table per metric, the others, and the score.
    pub fn tables(&self) -> Vec<Table> {
        let mut tables: Vec<Table> = self.parameter_table().into_iter().collect();
        let reported = self.published.metrics.iter().filter(|m| !m.relative && !self.is_in_layout(&m.key));
        tables.extend(reported.filter_map(|metric| self.metric(metric)));
        tables.extend(self.layouts());
        tables.extend(self.attempts());
        tables.extend(self.shares());
        tables.extend(self.pairs());
        tables.extend(self.orders());
        tables.extend(self.trials());
        tables.extend(self.balancing());
        tables.extend(self.histograms());
        tables.extend(self.more());
        tables.extend(self.not_identifiable());
        tables.extend(self.score_table());
        tables
    }

    /// What must be said of the runs, one sentence each.
    pub fn remarks(&self) -> impl Iterator<Item = String> {
        self.rows
            .iter()
            .filter_map(|row| row.found.remark.as_ref().map(|remark| format!("{}: {remark}", row.row.label)))
    }

    /// Rows whose runs were ended early, one sentence each.
    pub fn halted(&self) -> impl Iterator<Item = String> {
        self.rows.iter().filter_map(|row| {
            let halted = row.found.halted.as_ref()?;
            Some(format!("{} has no result: {halted}", self.name_of(row)))
        })
    }

    /// A row with its test.
    pub(super) fn name_of(&self, row: &Reproduced) -> String {
        match self.published.test_of(&row.row.key) {
            Some(test) if !row.row.label.contains(test.label.as_str()) => format!("{}: {}", test.label, row.row.label),
            _ => row.row.label.clone(),
        }
    }

    fn metric(&self, metric: &published::Metric) -> Option<Table> {
        let rows = self.rows.iter().filter_map(|Reproduced { row, found, fitted, .. }| {
            let published = row.values.get(&metric.key).map(|&value| model::Published { value, fitted: *fitted });
            if published.is_none() && !row.unpublished.contains(&metric.key) {
                return None;
            }
            let better = match metric.better {
                Better::Lower => model::Better::Lower,
                Better::Higher => model::Better::Higher,
            };
            let ours = found.values.get(metric.key.as_str()).copied();
            Some(self::row(&row.key, &row.label, metric.unit.clone().into(), better, ours, published))
        });
        let fitted = match self.rows.iter().filter(|row| row.fitted).count() {
            0 => "No row was fitted".into(),
            fitted => format!("{fitted} rows were fitted"),
        };
        let note = format!("{fitted}: table {}-parameters.", self.name);
        let title = format!("{}: {}", self.published.title, metric.label);
        self.metrics(&metric.key, title, note, rows.collect())
    }

    /// A table of metrics, if there are any.
    fn metrics(&self, name: &str, title: String, note: String, rows: Vec<Metric>) -> Option<Table> {
        let name = format!("{}-{}", self.name, name.replace('_', "-"));
        (!rows.is_empty()).then_some(Table { name, title, note, body: Body::Metric(rows) })
    }

    fn pairs(&self) -> Option<Table> {
        let rows = self.published.pairs.iter().filter_map(|pair| self.pair(pair)).flatten();
        let note = format!("A row is fitted if both rows it compares are. {}", self.published.pairs_note);
        self.metrics("gain", "Before and after".into(), note, rows.collect())
    }

    fn pair(&self, pair: &Pair) -> Option<[Metric; 2]> {
        let of = |key: &String| self.rows.iter().find(|row| row.row.key == *key);
        let (before, after) = (of(&pair.before)?, of(&pair.after)?);
        let metric = self.published.metrics.iter().find(|metric| metric.key == pair.metric)?;
        // What is better lower gains by falling: as the published gains are.
        let higher = metric.better == Better::Higher;
        let ratio_of = |before: f64, after: f64| if higher { after / before } else { before / after };
        let published = ratio_of(*before.row.values.get(&pair.metric)?, *after.row.values.get(&pair.metric)?);
        let found = |row: &Reproduced| row.found.values.get(pair.metric.as_str()).copied();
        let ours = found(before).zip(found(after)).map(|(before, after)| ratio_of(before, after));
        let fitted = before.fitted && after.fitted;
        // As the gains were published; more digits would be of the rounding of the latencies.
        let rounded = |value: f64| (value * 100.0).round() / 100.0;
        let gain = |ratio: f64| if higher { 100.0 * ratio - 100.0 } else { 100.0 - 100.0 / ratio };
        let row = |what: &str, label: &str, unit: &'static str, of: &dyn Fn(f64) -> f64| {
            let published = Some(model::Published { value: rounded(of(published)), fitted });
            let (key, label) = (format!("{}-{what}", pair.key), format!("{}: {label}", pair.label));
            row(&key, &label, unit.into(), model::Better::Higher, ours.map(of), published)
        };
        Some([
            row("ratio", if higher { "after / before" } else { "before / after" }, "", &|ratio| ratio),
            row("gain", "gain", "%", &gain),
        ])
    }

    fn histograms(&self) -> impl Iterator<Item = Table> {
        self.published.histograms.iter().flat_map(|published| {
            let ours = self.rows.iter().find(|row| row.row.key == published.row);
            let label = ours.map_or_else(String::new, |row| row.row.label.clone());
            let highest =
                |i: usize| published.slots.get(i + 1).map_or_else(|| published.slots[i][0] * 2 - 1, |n| n[0] - 1);
            let theirs =
                published.slots.iter().enumerate().map(|(i, &[low, count])| (low, highest(i), count)).collect();
            let table = |whose: &str, slots: Vec<(u64, u64, u64)>, mean: f64, total: u64| Table {
                name: format!("{}-histogram-{whose}", self.name),
                title: format!("{label}: {whose}"),
                note: String::new(),
                body: Body::Histogram { unit: "us", slots, mean: Some(mean), total },
            };
            let ours = ours.map(|row| row.found.latencies.clone()).unwrap_or_default();
            [
                table("published", theirs, published.average as f64, published.total),
                table("twin", ours.slots, ours.mean, ours.total),
            ]
        })
    }

    fn more(&self) -> Option<Table> {
        let rows = self.rows.iter().flat_map(|row| row.found.more.iter().flat_map(|more| self.quantity(row, more)));
        let note = "Of one run, not of the mean. No parameter was fitted to these rows.".into();
        self.metrics("more", "Further figures of the runs".into(), note, rows.collect())
    }

    /// One row for a single value, two for the least and the greatest of many.
    fn quantity(&self, of: &Reproduced, more: &More) -> Vec<Metric> {
        let published = self.published.lists.iter().find(|list| list.row == of.row.key && list.key == more.key);
        let row = |end: &str, choose: fn(f64, f64) -> f64| {
            let published = published.and_then(|list| list.values.iter().copied().reduce(choose));
            let published = published.map(|value| model::Published { value, fitted: false });
            let key = format!("{} {} {end}", of.row.key, more.key);
            let label = format!("{}: {} {end}", of.row.label, more.label);
            let ours = more.values.iter().copied().reduce(choose);
            self::row(key.trim_end(), label.trim_end(), more.unit.into(), model::Better::Neutral, ours, published)
        };
        match more.values.len() {
            0 | 1 => vec![row("", f64::max)],
            _ => vec![row("min", f64::min), row("max", f64::max)],
        }
    }

    /// Rows in the published order beside the twin's.
    fn orders(&self) -> Option<Table> {
        // All rows of a configuration begin alike; what follows is reported.
        let label = |key: &String| {
            let row = self.published.rows.iter().find(|row| row.key == *key);
            row.map_or(String::new(), |row| row.label.rsplit(": ").next().unwrap_or_default().to_string())
        };
        let line = |order: &published::Ordered| {
            let higher = self.published.metrics.iter().any(|m| m.key == order.metric && m.better == Better::Higher);
            let value = |key: &String| {
                let row = self.rows.iter().find(|row| row.row.key == *key);
                row.and_then(|row| row.found.values.get(order.metric.as_str()).copied()).unwrap_or(f64::NAN)
            };
            let mut ours = order.rows.clone();
            ours.sort_by(|a, b| if higher { value(b).total_cmp(&value(a)) } else { value(a).total_cmp(&value(b)) });
            let noise = self.published.noise.percent;
            let is_tie = |a: f64, b: f64| 100.0 * (a / b - 1.0).abs() <= noise;
            let ties = ours.windows(2).filter(|pair| is_tie(value(&pair[0]), value(&pair[1]))).count();
            let better = |a: f64, b: f64| !is_tie(a, b) && (a > b) == higher;
            let rows = || order.rows.iter().map(value).enumerate();
            let reversed = rows().any(|(i, first)| rows().skip(i + 1).any(|(_, later)| better(later, first)));
            let mut text = String::new();
            for (i, key) in ours.iter().enumerate() {
                let equal = i > 0 && is_tie(value(&ours[i - 1]), value(key));
                text += if i == 0 {
                    ""
                } else if equal {
                    " = "
                } else {
                    " > "
                };
                text += &label(key);
            }
            let published = order.rows.iter().map(label).collect::<Vec<_>>().join(" > ");
            let verdict = match () {
                () if reversed => "different order",
                () if ties > 0 => "as published except ties",
                () => "as published",
            };
            [order.label.clone(), published, text, verdict.into()].map(Cell::Text).to_vec()
        };
        let rows = self.published.orders.iter().map(line).collect();
        let title = format!("Order of the rows, best first; rows within {} % are ties", self.published.noise.percent);
        self.list("order", &title, ["configuration", "published", "twin", "verdict"], rows)
    }

    /// Changes between rows of many runs.
    fn trials(&self) -> Option<Table> {
        let line = |trial: &published::Trial| {
            let of = |key: &String| {
                let row = self.rows.iter().find(|row| row.row.key == *key);
                let runs = row.map_or(&[][..], |row| &row.runs);
                runs.iter().filter_map(|run| run.values.get(trial.metric.as_str()).copied()).collect::<Vec<f64>>()
            };
            let (before, after) = (of(&trial.before), of(&trial.after));
            let mut sorted = before.clone();
            sorted.sort_by(f64::total_cmp);
            let base = statistics::median(&sorted).filter(|base| *base > 0.0).unwrap_or(f64::NAN);
            let percent = |value: f64| format!("{:+.2} %", 100.0 * value / base + 0.0);
            let published = Cell::Text(format!("{:+.2} %", trial.published));
            let runs = Cell::Text(format!("{} + {}", before.len(), after.len()));
            let label = Cell::Text(trial.label.clone());
            let Some(shift) = statistics::shift(&before, &after) else {
                let none = || Cell::Na(Na::NotRecorded);
                return vec![label, published, none(), none(), runs, none()];
            };
            if before == after {
                let none = Cell::Na(Na::Undefined);
                return vec![
                    label,
                    published,
                    Cell::Text(percent(0.0)),
                    none,
                    runs,
                    Cell::Text("identical runs".into()),
                ];
            }
            let Interval { low, high, .. } = shift.interval;
            let verdict = match () {
                () if low <= 0.0 && high >= 0.0 => "not distinguishable",
                () if trial.published == 0.0 => "none published",
                () if (shift.estimate > 0.0) != (trial.published > 0.0) => "opposite sign",
                () if (low..=high).contains(&(trial.published / 100.0 * base)) => "published change in the interval",
                () => "published sign, published change outside the interval",
            };
            let interval = Cell::Text(format!("{} to {}", percent(low), percent(high)));
            vec![label, published, Cell::Text(percent(shift.estimate)), interval, runs, Cell::Text(verdict.into())]
        };
        let rows = self.published.trials.iter().map(line).collect();
        let columns = ["change", "published", "twin", "95 % interval", "runs", "verdict"];
        self.list("trials", "Changes over many runs: Hodges-Lehmann shift of the median", columns, rows)
    }

    /// Time of NUMA balancing of each row.
    fn balancing(&self) -> Option<Table> {
        let line = |row: &Reproduced| {
            let of = row.found.balancing.as_ref()?;
            let seconds = |time: u64| Cell::Text(format!("{:.3}", time as f64 / 1e9));
            let all = of.time.scan + of.time.fault + of.time.migrate;
            let share = format!("{:.3} %", 100.0 * all as f64 / of.of.max(1) as f64);
            let count = |name| row.found.values.get(name).map_or(Cell::Na(Na::NotRecorded), |n| Cell::Int(*n as i128));
            let (scan, fault, migrate) = (seconds(of.time.scan), seconds(of.time.fault), seconds(of.time.migrate));
            let [updates, faults] = ["numa_pte_updates", "numa_hint_faults"].map(count);
            let [local, migrated] = ["numa_hint_faults_local", "numa_pages_migrated"].map(count);
            let text = Cell::Text;
            let time = row.found.values.get("time").map_or(Cell::Na(Na::NotRecorded), |s| text(format!("{s:.1}")));
            Some(vec![
                text(row.row.key.clone()),
                time,
                scan,
                fault,
                migrate,
                text(share),
                updates,
                faults,
                local,
                migrated,
            ])
        };
        let rows = self.rows.iter().filter_map(line).collect();
        let columns = [
            "row",
            "run s",
            "scan s",
            "fault s",
            "migrate s",
            "share of thread time",
            "numa_pte_updates",
            "numa_hint_faults",
            "local",
            "numa_pages_migrated",
        ];
        self.list("system-time", "System time and activity of NUMA balancing", columns, rows)
    }

    /// A list, if there is anything in it.
    pub(super) fn list<const N: usize>(
        &self,
        name: &str,
        title: &str,
        columns: [&'static str; N],
        rows: Vec<Vec<Cell>>,
    ) -> Option<Table> {
        let column = |name: &'static str| Column { key: name.replace([' ', '%'], "_"), label: name.into(), unit: "" };
        (!rows.is_empty()).then(|| Table {
            name: format!("{}-{name}", self.name),
            title: title.into(),
            note: String::new(),
            body: Body::List { columns: columns.map(column).to_vec(), rows },
        })
    }

    fn not_identifiable(&self) -> Option<Table> {
        let quantities = &self.published.not_identifiable;
        let column = Column { key: "quantity".into(), label: "quantity".into(), unit: "" };
        (!quantities.is_empty()).then(|| Table {
            name: format!("{}-not-identifiable", self.name),
            title: "Not identifiable from the published figures".into(),
            note: String::new(),
            body: Body::List {
                columns: vec![column],
                rows: quantities.iter().map(|quantity| vec![Cell::Text(quantity.clone())]).collect(),
            },
        })
    }
}

fn row(
    key: &str,
    label: &str,
    unit: std::borrow::Cow<'static, str>,
    better: model::Better,
    ours: Option<f64>,
    published: Option<model::Published>,
) -> Metric {
    Metric {
        key: key.replace(['-', ' '], "_"),
        label: label.into(),
        unit,
        better,
        gain: Gain::None,
        decimals: ours.map(decimals),
        value: Cell::float(ours),
        published,
    }
}

/// Decimals that give four significant digits, or all before the point; none for whole numbers.
fn decimals(value: f64) -> u8 {
    match value.abs() {
        v if v >= 1000.0 || v.fract() == 0.0 => 0,
        v if v >= 100.0 => 1,
        v if v >= 10.0 => 2,
        _ => 3,
    }
}
