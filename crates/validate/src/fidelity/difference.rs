//! Published changes from before to after: on real kernels, of which `make lab-variants` builds one with the change and
//! one without it, and in the twin. Counts alone; nothing that depends on the speed of an emulated machine.

use super::csv::Csv;
use super::failed;
use super::store::{Guests, Runs, SEEDS};
use crate::Error;
use mmtwin::{Analysed, Request, run};
use mmtwin_event::{Event, Kind, Sink, Source};
use mmtwin_lab::{Folder, Mode};
use mmtwin_report::statistics::median;
use mmtwin_scenario::{Scenario, load};
use mmtwin_trace::recording::Recording;
use std::collections::BTreeMap;
use std::path::Path;

/// A change of the kernel, with the scenario that shows it.
pub struct Change {
    /// What was changed.
    title: &'static str,
    /// Name of the scenario.
    pub name: &'static str,
    before: Side,
    after: Side,
    quantities: &'static [Quantity],
}

/// A kernel on one side of a change.
struct Side {
    /// What it is called in the table.
    label: &'static str,
    /// Its name in the lab.
    kernel: &'static str,
    /// What it changes of the scenario.
    sets: &'static [&'static str],
}

/// Something that is counted.
struct Quantity {
    label: &'static str,
    /// Where an arm has it; the first that it has is taken.
    found: &'static [Found],
}

/// A place of a count.
enum Found {
    /// Events of this name.
    Event(&'static str),
    /// Passes of the drain work that were asked for while the pass before was under way.
    Again,
    /// A figure of the first action of the first phase.
    Figure(&'static str),
    /// What a counter of /proc/vmstat grew by.
    Counter(&'static str),
}

const BATCHED: &str = "vmalloc: one subtraction from `vmap_lazy_nr` per list of purged areas instead of one per area";
const STAGGERED: &str = "NUMA balancing: the first scan of a new thread is staggered";
const STATISTICS: &str = "`vm.numa_stat` 0 instead of 1";

const UNBATCHED: Side =
    Side { label: "6.12-unbatched", kernel: "6.12-unbatched", sets: &["kernel.release=\"6.12-unbatched\""] };
const STOCK_6_12: Side = Side { label: "6.12-lab", kernel: "6.12-lab", sets: &[] };
const UNSTAGGERED: Side =
    Side { label: "6.1-unstaggered", kernel: "6.1-unstaggered", sets: &["kernel.release=\"6.1-unstaggered\""] };
const STOCK_6_1: Side = Side { label: "6.1-lab", kernel: "6.1-lab", sets: &[] };

/// All changes.
pub const CHANGES: [Change; 4] = [
    Change {
        title: BATCHED,
        name: "purge-operations",
        before: UNBATCHED,
        after: STOCK_6_12,
        quantities: &[Quantity {
            label: "locked subtractions in purges",
            found: &[Found::Event("vmap_lazy_sub"), Found::Figure("purge_subtractions")],
        }],
    },
    Change {
        title: BATCHED,
        name: "purges",
        before: UNBATCHED,
        after: STOCK_6_12,
        quantities: &[
            Quantity { label: "drains queued again", found: &[Found::Again, Found::Figure("passes_again")] },
            Quantity { label: "drains", found: &[Found::Event("drain"), Found::Figure("passes")] },
            Quantity { label: "frees that asked for a drain", found: &[Found::Event("drain_asked")] },
        ],
    },
    Change {
        title: STAGGERED,
        name: "scan-start",
        before: UNSTAGGERED,
        after: STOCK_6_1,
        quantities: &[
            Quantity { label: "numa_pte_updates", found: &[Found::Counter("numa_pte_updates")] },
            Quantity { label: "numa_hint_faults", found: &[Found::Counter("numa_hint_faults")] },
            Quantity { label: "numa_hint_faults_local", found: &[Found::Counter("numa_hint_faults_local")] },
            Quantity { label: "numa_pages_migrated", found: &[Found::Counter("numa_pages_migrated")] },
        ],
    },
    Change {
        title: STATISTICS,
        name: "numa-stat",
        before: Side { label: "6.1", kernel: "6.1", sets: &[] },
        after: Side { label: "6.1, off", kernel: "6.1", sets: &["kernel.sysctl.\"vm.numa_stat\"=0"] },
        quantities: &[
            Quantity { label: "numa_hit", found: &[Found::Counter("numa_hit")] },
            Quantity { label: "numa_local", found: &[Found::Counter("numa_local")] },
            Quantity { label: "numa_other", found: &[Found::Counter("numa_other")] },
            Quantity { label: "numa_interleave", found: &[Found::Counter("numa_interleave")] },
        ],
    },
];

/// What was counted in runs of one side: by quantity, a value of every run that has it, sorted.
type Counts = Vec<Vec<f64>>;

impl Side {
    fn scenario(&self, directory: &Path, name: &str, seed: u64) -> Result<Scenario, Error> {
        let mut sets: Vec<String> = self.sets.iter().map(|set| set.to_string()).collect();
        // As everything in mode exact.
        sets.extend([format!("run.seed={seed}"), "machine.cpu.single_threaded_tcg=true".into()]);
        load(&directory.join("difference").join(format!("{name}.toml")), &sets).map_err(failed)
    }
}

impl Change {
    fn sides(&self) -> [(&Side, &'static str); 2] {
        [(&self.before, "before"), (&self.after, "after")]
    }

    /// Does something with the runs of a side.
    fn with_runs<T>(
        &self,
        directory: &Path,
        (side, of): (&Side, &str),
        work: impl FnOnce(&Runs<'_, BTreeMap<String, f64>>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let scenario = |seed| side.scenario(directory, self.name, seed);
        let file = directory.join("runs/difference").join(format!("{}.jsonl.zst", self.name));
        let keep = |recording: &Path, analysed: &Analysed, _: &Scenario| self.kept(recording, analysed);
        let (kernel, mode, file) = (side.kernel, Mode::Exact, file.as_path());
        work(&Runs { kernel, mode, seeds: &SEEDS, scenario: &scenario, file, of, keep: &keep })
    }

    /// Runs in the lab what is not stored, or all of it; the number of runs. What is stored stays if a kernel was not
    /// built.
    pub fn refresh(&self, directory: &Path, again: bool, guests: Guests<'_>) -> Result<usize, Error> {
        let mut ran = 0;
        for side in self.sides() {
            ran += self.with_runs(directory, side, |runs| {
                let built = || Folder::find().kernel(runs.kernel, None);
                let error = if runs.missing(again)?.is_empty() { None } else { built().err() };
                let Some(error) = error else { return runs.refresh(again, guests) };
                let message = format!("{}: {error}; `make lab-variants` builds those for before and after", self.name);
                match runs.missing(false)?.is_empty() {
                    true => (guests.note)(&message),
                    false => return Err(failed(message)),
                }
                Ok(0)
            })?;
        }
        Ok(ran)
    }

    /// What the stored runs of a side counted, and the twin's runs of the same seeds.
    fn count(&self, directory: &Path, side: &Side, place: &str) -> Result<(Counts, Counts), Error> {
        let (mut kernel, mut twin) = (vec![Vec::new(); self.quantities.len()], vec![Vec::new(); self.quantities.len()]);
        self.with_runs(directory, (side, place), |runs| {
            for stored in runs.stored()? {
                self.add(&stored.kept, &mut kernel);
                let state = stored.state()?;
                let request = Request { name: self.name, state: state.as_ref(), ..Request::default() };
                // What the twin cannot do, it refuses; counters that it does not keep, it does not have.
                if let Ok(simulated) = run(&(runs.scenario)(stored.seed)?, request, &mut |_| {}) {
                    self.add(&self.counted(&simulated.analysed, &Seen::default()), &mut twin);
                }
            }
            Ok(())
        })?;
        kernel.iter_mut().chain(&mut twin).for_each(|values| values.sort_by(f64::total_cmp));
        Ok((kernel, twin))
    }

    /// What is kept of a recording: its counts by quantity.
    fn kept(&self, recording: &Path, analysed: &Analysed) -> Result<BTreeMap<String, f64>, Error> {
        let (mut seen, mut outcome) = (Seen::default(), mmtwin_trace::Outcome::default());
        let recording = Recording::open(recording)?;
        seen.start(&recording.source());
        recording.read(&mut seen, &mut outcome)?;
        Ok(self.counted(analysed, &seen))
    }

    /// What a run counted, of the quantities that it has.
    fn counted(&self, run: &Analysed, seen: &Seen) -> BTreeMap<String, f64> {
        let action = run.results.as_ref().and_then(|results| results.phases.first()?.actions.first());
        let value = |found: &Found| match found {
            Found::Event(name) => seen.events.get(*name).map(|count| *count as f64),
            Found::Again => seen.events.contains_key("drain_asked").then_some(seen.again as f64),
            Found::Figure(name) => action?.more.get(*name).copied(),
            Found::Counter(name) => run.analysis.counters.change("vmstat", "", name).map(|change| change as f64),
        };
        let quantity = |of: &Quantity| Some((of.label.to_string(), of.found.iter().find_map(value)?));
        self.quantities.iter().filter_map(quantity).collect()
    }

    fn add(&self, counted: &BTreeMap<String, f64>, counts: &mut Counts) {
        for (quantity, values) in self.quantities.iter().zip(counts) {
            values.extend(counted.get(quantity.label));
        }
    }

    /// The rows of the table.
    fn rows(&self, directory: &Path) -> Result<Vec<Row>, Error> {
        let (before, twin_before) = self.count(directory, &self.before, "before")?;
        let (after, twin_after) = self.count(directory, &self.after, "after")?;
        let rows = self.quantities.iter().enumerate().map(|(at, quantity)| Row {
            quantity: quantity.label,
            kernel: [before[at].clone(), after[at].clone()],
            twin: [twin_before[at].clone(), twin_after[at].clone()],
        });
        Ok(rows.collect())
    }
}

/// Events by name, and drains that were asked for while one was under way.
#[derive(Default)]
struct Seen {
    /// Zero for those that were recorded and did not occur.
    events: BTreeMap<String, u64>,
    again: u64,
    /// Whether a drain runs, and whether another was asked for since it began.
    drains: Option<bool>,
}

impl Sink for Seen {
    fn start(&mut self, source: &Source) {
        let names = source.enabled.iter().flatten().filter_map(|name| name.rsplit([':', '/']).next());
        self.events.extend(names.map(|name| (name.to_string(), 0)));
    }

    fn event(&mut self, event: &Event<'_>) {
        if let Some(count) = self.events.get_mut(event.name) {
            *count += 1;
        }
        match (event.name, event.kind) {
            ("drain", _) => self.drains = Some(false),
            ("drain_asked", _) => self.drains = self.drains.map(|_| true),
            // The end of a pass.
            (_, Kind::PurgeVmapAreaLazy) => self.again += u64::from(self.drains.take() == Some(true)),
            _ => {}
        }
    }
}

/// A quantity before and after, each sorted.
struct Row {
    quantity: &'static str,
    kernel: [Vec<f64>; 2],
    twin: [Vec<f64>; 2],
}

/// By how many percent something grew, as precisely as it is shown.
fn percent(before: f64, after: f64) -> Option<f64> {
    (before != 0.0).then(|| (1000.0 * (after - before) / before).round() / 10.0)
}

/// Change of the medians in percent, with the least and the greatest of any two runs.
fn change([before, after]: &[Vec<f64>; 2]) -> Option<[f64; 3]> {
    let middle = percent(median(before)?, median(after)?)?;
    Some([middle, percent(*before.last()?, *after.first()?)?, percent(*before.first()?, *after.last()?)?])
}

impl Row {
    /// Whether the twin's change lies in the range of the kernel's.
    fn verdict(&self) -> &'static str {
        match (change(&self.kernel), change(&self.twin)) {
            (Some([_, low, high]), Some([twin, ..])) if (low..=high).contains(&twin) => "inside",
            (Some(_), Some(_)) => "outside",
            _ => "n/a",
        }
    }

    /// The row of the file.
    fn cells(&self) -> Vec<String> {
        let shown = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
        let side = |values: &Vec<f64>| [median(values), values.first().copied(), values.last().copied()].map(shown);
        let changed = |sides: &[Vec<f64>; 2]| match change(sides) {
            Some(changed) => changed.map(|percent| format!("{percent:.1}")),
            None => Default::default(),
        };
        let of_arm = |sides: &[Vec<f64>; 2]| sides.iter().flat_map(side).chain(changed(sides)).collect::<Vec<_>>();
        let verdict = self.verdict().to_string();
        [vec![self.quantity.to_string()], of_arm(&self.kernel), of_arm(&self.twin), vec![verdict]].concat()
    }
}

/// All changes as a file, and what it says in a sentence.
pub fn summary(changes: &[&Change], directory: &Path) -> Result<(Csv, String), Error> {
    let side = |of: &str| format!("{of}_median,{of}_least,{of}_greatest");
    let arm = |of: &str| {
        let change = format!("{of}_change_percent,{of}_change_least,{of}_change_greatest");
        [side(&format!("{of}_before")), side(&format!("{of}_after")), change].join(",")
    };
    let columns = ["change,scenario,before,after,quantity".to_string(), arm("kernel"), arm("twin"), "verdict".into()];
    let mut csv = Csv::new("changes.csv", &columns.join(","));
    let (mut inside, mut judged) = (0, 0);
    for change in changes {
        let of = [change.title, change.name, change.before.label, change.after.label].map(str::to_string);
        for row in change.rows(directory)? {
            inside += usize::from(row.verdict() == "inside");
            judged += usize::from(row.verdict() != "n/a");
            csv.push(of.clone().into_iter().chain(row.cells()));
        }
    }
    let text = format!(
        "**Before and after**: kernels with a published change beside the same kernels without it (`make lab-variants`, \
         [lab.md](reference/lab.md)). Of {judged} counts that {} such changes alter and the twin knows, its change lies within the range \
         of the kernel's for {inside}.",
        changes.len()
    );
    Ok((csv, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mmtwin_event::event::Fields;

    #[test]
    fn every_scenario_can_be_read_on_both_sides() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/fidelity");
        for change in &CHANGES {
            let scenarios = change.sides().map(|(side, _)| side.scenario(&directory, change.name, 3).map(|s| s.hash()));
            let [Ok(before), Ok(after)] = scenarios else { panic!("{}", change.name) };
            assert_ne!(before, after, "{}", change.name);
        }
    }

    #[test]
    fn drains_asked_for_during_a_drain() {
        let mut seen = Seen::default();
        let enabled = ["mmtwin:drain", "mmtwin:drain_asked", "vmalloc:purge_vmap_area_lazy"].map(String::from);
        seen.start(&Source { enabled: Some(enabled.into()), ..Source::default() });
        let end = "purge_vmap_area_lazy";
        for name in
            ["drain_asked", "drain", end, "drain_asked", "drain", "drain_asked", "drain_asked", end, "drain", end]
        {
            let kind = if name == end { Kind::PurgeVmapAreaLazy } else { Kind::Other };
            let (cpu, pid, tgid, flags, preempt_count, id) = (0, 0, 0, 0, 0, 0);
            let (comm, raw, fields) = (&b""[..], &b""[..], Fields::Untyped);
            seen.event(&Event { ts: 0, cpu, pid, tgid, flags, preempt_count, kind, id, comm, name, raw, fields });
        }
        assert_eq!((seen.again, seen.events["drain"], seen.events["drain_asked"]), (1, 3, 4));
    }

    #[test]
    fn a_change_has_the_range_of_any_two_runs() {
        let sides = |before: &[f64], after: &[f64]| [before.to_vec(), after.to_vec()];
        assert_eq!(change(&sides(&[80.0, 100.0, 125.0], &[40.0, 50.0, 60.0])), Some([-50.0, -68.0, -25.0]));
        assert_eq!(change(&sides(&[0.0], &[5.0])), None, "nothing has no percentage");
        assert_eq!(change(&sides(&[], &[5.0])), None);
        let kernel = sides(&[80.0, 100.0, 125.0], &[40.0, 50.0, 60.0]);
        let row = |twin| Row { quantity: "q", kernel: kernel.clone(), twin };
        assert_eq!(row(sides(&[10.0], &[4.0])).verdict(), "inside");
        assert_eq!(row(sides(&[10.0], &[9.0])).verdict(), "outside");
        let cells = row(sides(&[], &[])).cells().join(",");
        assert_eq!(cells, "q,100,80,125,50,40,60,-50.0,-68.0,-25.0,,,,,,,,,,n/a");
    }
}
