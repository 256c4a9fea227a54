//! Whether the twin chooses as the kernel does: over a family, which is a scenario with a tunable at several values
//! ([`crate::fidelity::generate::tunable`]), the throughput of either arm at each value.
//!
//! Throughput of a run is the geometric mean of its phases: accesses per second of those with a duration, the inverse of
//! the time that others took.

use super::figures::{Figures, Phase};
use super::{Cell, Set, seeds_of};
use crate::Error;
use crate::fidelity::failed;
use crate::fidelity::generate::{Tunable, kernel_of, tunable};
use std::fmt::Write;
use std::path::Path;

/// Values of the kernel differ clearly if their throughput differs by more than this, in percent, and each run with the one
/// value is faster than each with the other.
const CLEAR: f64 = 3.0;

/// Throughput at a value of the tunable, as a logarithm.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// The value.
    pub value: String,
    /// The kernel's runs, by seed.
    pub runs: Vec<f64>,
    /// Their mean.
    pub kernel: f64,
    /// Mean of the twin's runs.
    pub twin: f64,
}

/// A family beside the twin.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Its tunable.
    pub of: String,
    /// Its values; empty: a run did not end by itself.
    pub members: Vec<Member>,
    /// Kendall's tau of all pairs of values; `None`: all are equal on the kernel, or a run did not end by itself.
    pub tau: Option<f64>,
    /// The same of pairs that differ clearly on the kernel; `None`: no pair does.
    pub clear: Option<f64>,
    /// Tau of all pairs between the kernel's own runs: those of the second seed beside those of the first. `None`: the
    /// first are equal, or a value has one run.
    pub own: Option<f64>,
    /// The twin names the kernel's best value and no other; `None`: the kernel's best two do not differ clearly.
    pub best: Option<bool>,
}

/// Families of a set together.
#[derive(Clone, Debug, PartialEq)]
pub struct Chosen {
    /// Families.
    pub families: usize,
    /// Mean of tau over all pairs, and of how many families.
    pub tau: (Option<f64>, usize),
    /// Mean of tau over pairs that differ clearly, and of how many families.
    pub clear: (Option<f64>, usize),
    /// Mean of tau between the kernel's own runs, and of how many families.
    pub own: (Option<f64>, usize),
    /// Families whose best value the twin names, and of how many.
    pub best: (usize, usize),
}

/// The family of a seed: a cell for each value.
///
/// # Errors
/// If the seed belongs to neither set.
pub fn family(directory: &Path, seed: u64) -> Result<Vec<Cell>, Error> {
    let file = directory.join("runs").join(Set::of(seed)?.name()).join(format!("family-{seed}.jsonl.zst"));
    let Tunable { key, values } = tunable(seed);
    let member = |value: &String| {
        let (change, file) = (Some((key.clone(), value.clone())), file.clone());
        Cell { seed, kernel: kernel_of(seed), change, file }
    };
    Ok(values.iter().map(member).collect())
}

/// Families of a set of which runs are stored.
///
/// # Errors
/// If the directory cannot be read.
pub fn families(directory: &Path, set: Set) -> Result<Vec<Vec<Cell>>, Error> {
    seeds_of(directory, set.name(), "family-")?.into_iter().map(|seed| family(directory, seed)).collect()
}

impl Choice {
    /// Puts a family beside the twin. Members of which no run is stored say nothing.
    ///
    /// # Errors
    /// If stored runs cannot be read, or are not of today's scenario.
    pub fn of(family: &[Cell]) -> Result<Choice, Error> {
        let mut runs = Vec::new();
        for cell in family {
            let (_, value) = cell.change.as_ref().ok_or_else(|| failed("no member of a family"))?;
            runs.push((value.clone(), cell.pairs()?));
        }
        runs.retain(|(_, pairs)| !pairs.is_empty());
        let all: Vec<&Figures> = runs.iter().flat_map(|(_, pairs)| pairs).flat_map(|(k, t)| [k, t]).collect();
        let of = family.first().map_or_else(String::new, Cell::title);
        if runs.len() < 2 || !all.iter().all(|run| run.end.is_whole()) {
            return Ok(Choice { of, members: Vec::new(), tau: None, clear: None, own: None, best: None });
        }
        let common = |name: &&String| all.iter().all(|run| run.phases.contains_key(*name));
        let names: Vec<String> = all[0].phases.keys().filter(common).cloned().collect();
        let member = |(value, pairs): &(String, Vec<(Figures, Figures)>)| {
            let of_kernel: Vec<f64> = pairs.iter().map(|(kernel, _)| throughput(kernel, &names)).collect();
            let of_twin: Vec<f64> = pairs.iter().map(|(_, twin)| throughput(twin, &names)).collect();
            Member::new(value, &of_kernel, &of_twin)
        };
        Ok(Choice { of, ..Choice::by(runs.iter().map(member).collect()) })
    }

    /// The family in a line: by how much values differ from the first.
    pub fn line(&self) -> String {
        let mut text = format!("- {}:", self.of);
        let Some(first) = self.members.first() else { return text + " a run did not end by itself" };
        let percent = |by: f64| 100.0 * by.exp_m1();
        for member @ Member { value, kernel, twin, .. } in &self.members {
            let (by_kernel, by_twin) = (percent(kernel - first.kernel), percent(twin - first.twin));
            let (least, most) = member.range();
            let own = percent(most - least);
            let _ = write!(text, " {value} {by_kernel:+.1} % (seed to seed {own:.1} %, twin {by_twin:+.1} %),");
        }
        let figure = |tau: Option<f64>| tau.map_or_else(|| "n/a".into(), |tau| format!("{tau:.2}"));
        text + &format!(" tau {}, of clear pairs {}", figure(self.tau), figure(self.clear))
    }

    fn by(members: Vec<Member>) -> Choice {
        let by_twin = |member: &Member| Some((member.kernel, member.twin));
        let by_runs = |member: &Member| Some((*member.runs.first()?, *member.runs.get(1)?));
        let all = |_: &Member, _: &Member| true;
        let (of_all, own) = (tau(&members, by_twin, all), tau(&members, by_runs, all));
        let clear = tau(&members, by_twin, Member::differs_clearly);
        Choice { of: String::new(), tau: of_all, clear, own, best: best(&members), members }
    }
}

impl Member {
    fn new(value: &str, kernel: &[f64], twin: &[f64]) -> Member {
        let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len().max(1) as f64;
        Member { value: value.into(), runs: kernel.to_vec(), kernel: mean(kernel), twin: mean(twin) }
    }

    /// The slowest and the fastest of the kernel's runs.
    fn range(&self) -> (f64, f64) {
        self.runs.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), run| (run.min(least), run.max(most)))
    }

    /// On the kernel.
    fn differs_clearly(&self, other: &Member) -> bool {
        let (own, others) = (self.range(), other.range());
        let apart = own.1 < others.0 || others.1 < own.0;
        apart && (self.kernel - other.kernel).abs() > (1.0 + CLEAR / 100.0).ln()
    }
}

/// The logarithm of the throughput of a run: the mean over its phases.
fn throughput(run: &Figures, phases: &[String]) -> f64 {
    let of_phase = |phase: &Phase| {
        let rates = phase.rates.iter().filter(|rate| **rate > 0.0);
        if phase.timed && rates.clone().count() > 0 {
            return rates.clone().map(|rate| rate.ln()).sum::<f64>() / rates.count() as f64;
        }
        // Times are kept in milliseconds.
        -(phase.end - phase.start).max(1e-3).ln()
    };
    phases.iter().map(|name| of_phase(&run.phases[name])).sum::<f64>() / phases.len().max(1) as f64
}

/// Kendall's tau of two values of each member over pairs whose first values differ and that are `wanted`; a pair whose
/// second values are equal counts as neither. `None`: there is no such pair, or a member lacks a value.
fn tau(
    members: &[Member],
    values: impl Fn(&Member) -> Option<(f64, f64)>,
    wanted: impl Fn(&Member, &Member) -> bool,
) -> Option<f64> {
    let (mut sum, mut pairs) = (0.0, 0);
    for (at, a) in members.iter().enumerate() {
        for b in members[at + 1..].iter().filter(|b| wanted(a, b)) {
            let (of_a, of_b) = (values(a)?, values(b)?);
            let (first, second) = (of_b.0 - of_a.0, of_b.1 - of_a.1);
            if first != 0.0 {
                pairs += 1;
                sum += if second == 0.0 { 0.0 } else { (first * second).signum() };
            }
        }
    }
    (pairs > 0).then(|| sum / f64::from(pairs))
}

/// Whether the twin has the kernel's best value above all others. `None`: that does not differ clearly from the second.
fn best(members: &[Member]) -> Option<bool> {
    let mut sorted: Vec<&Member> = members.iter().collect();
    sorted.sort_by(|a, b| b.kernel.total_cmp(&a.kernel));
    let (first, others) = sorted.split_first()?;
    let clear = others.first()?.differs_clearly(first);
    clear.then(|| others.iter().all(|other| first.twin > other.twin))
}

impl Chosen {
    /// Of all families of a set.
    pub fn new(choices: &[Choice]) -> Chosen {
        let mean = |of: &dyn Fn(&Choice) -> Option<f64>| {
            let values: Vec<f64> = choices.iter().filter_map(of).collect();
            ((!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64), values.len())
        };
        let bests = || choices.iter().filter_map(|choice| choice.best);
        Chosen {
            families: choices.len(),
            tau: mean(&|choice| choice.tau),
            clear: mean(&|choice| choice.clear),
            own: mean(&|choice| choice.own),
            best: (bests().filter(|right| *right).count(), bests().count()),
        }
    }

    /// Columns of [`Chosen::line`].
    pub const COLUMNS: &str =
        "families,tau,tau_families,clear_tau,clear_tau_families,kernel_tau,kernel_tau_families,best_right,best_of";

    /// As a line of a file.
    pub fn line(&self) -> String {
        let figure = |figure: Option<f64>| figure.map_or_else(String::new, |figure| format!("{figure:.2}"));
        let of = |(mean, families): (Option<f64>, usize)| format!("{},{families}", figure(mean));
        let (all, clear, own) = (of(self.tau), of(self.clear), of(self.own));
        format!("{},{all},{clear},{own},{},{}", self.families, self.best.0, self.best.1)
    }

    /// From such a line.
    pub fn read(line: &str) -> Option<Chosen> {
        let cells: Vec<&str> = line.split(',').collect();
        let [families, tau, taus, clear, clears, own, owns, right, of] = cells[..] else { return None };
        let figure = |text: &str| if text.is_empty() { Some(None) } else { text.parse().ok().map(Some) };
        let number = |text: &str| text.parse::<usize>().ok();
        Some(Chosen {
            families: number(families)?,
            tau: (figure(tau)?, number(taus)?),
            clear: (figure(clear)?, number(clears)?),
            own: (figure(own)?, number(owns)?),
            best: (number(right)?, number(of)?),
        })
    }

    /// In a sentence.
    pub fn sentence(&self) -> String {
        let figure = |figure: Option<f64>| figure.map_or_else(|| "n/a".into(), |figure| format!("{figure:.2}"));
        let Chosen { families, tau, clear, own, best } = self;
        let mut text = format!(
            "Choice: {families} families of a scenario with a tunable at four or five values. Kendall's tau of throughput, mean: \
             {} of {} families, between the kernel's own runs with seed 1 and with seed 2 {} of {}; of pairs whose runs on the kernel differ by more than {CLEAR} % and do not overlap {} of {}.",
            figure(tau.0),
            tau.1,
            figure(own.0),
            own.1,
            figure(clear.0),
            clear.1
        );
        let _ = write!(
            text,
            " The kernel's best value is the twin's in {} of {} families whose best two differ so.",
            best.0, best.1
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_best_of_a_family() {
        let by = |kernel: &[f64], twin: &[f64]| {
            Choice::by(kernel.iter().zip(twin).map(|(kernel, twin)| Member::new("4", &[*kernel], &[*twin])).collect())
        };
        let kernel = [0.0, 0.01, 0.5, 0.9];
        let of = by(&kernel, &kernel);
        assert_eq!((of.tau, of.clear, of.best), (Some(1.0), Some(1.0), Some(true)));
        let twin = [0.01, 0.0, 0.9, 0.5];
        let of = by(&kernel, &twin);
        // Two of six pairs are the other way round; one of them does not differ clearly.
        assert_eq!((of.tau, of.best), (Some(2.0 / 6.0), Some(false)));
        assert_eq!(of.clear, Some(3.0 / 5.0));
        let close = by(&[0.0, 0.01], &[0.0, 0.0]);
        assert_eq!((close.tau, close.clear, close.best), (Some(0.0), None, None));
        // A twin to which all are equal names none.
        assert_eq!(by(&[0.0, 0.5], &[0.0, 0.0]).best, Some(false));
        assert_eq!(
            close.line(),
            "- : 4 +0.0 % (seed to seed 0.0 %, twin +0.0 %), 4 +1.0 % (seed to seed 0.0 %, twin +0.0 %), tau 0.00, of clear pairs n/a"
        );
    }

    #[test]
    fn what_the_kernels_own_runs_leave_open_is_not_clear() {
        let of = |slow: [f64; 2], fast: [f64; 2]| {
            Choice::by(vec![Member::new("1", &slow, &[0.0, 0.0]), Member::new("2", &fast, &[0.1, 0.1])])
        };
        assert_eq!((of([0.0, 0.2], [0.3, 0.4]).clear, of([0.0, 0.2], [0.3, 0.4]).best), (Some(1.0), Some(true)));
        assert_eq!((of([0.0, 0.2], [0.1, 0.9]).clear, of([0.0, 0.2], [0.1, 0.9]).best), (None, None));
        assert_eq!(of([0.0, 0.2], [0.1, 0.9]).tau, Some(1.0));
        // Whether the kernel agrees with itself.
        assert_eq!(of([0.0, 0.2], [0.1, 0.9]).own, Some(1.0));
        assert_eq!(of([0.0, 0.2], [0.1, 0.1]).own, Some(-1.0));
    }

    #[test]
    fn a_set_is_a_line_and_back() {
        let choice = |tau, clear, best| {
            let (of, members, own) = (String::new(), Vec::new(), clear);
            Choice { of, members, tau, clear, own, best }
        };
        let of =
            [choice(Some(1.0), Some(1.0), Some(true)), choice(Some(0.5), None, None), choice(None, None, Some(false))];
        let chosen = Chosen::new(&of);
        assert_eq!(chosen.line(), "3,0.75,2,1.00,1,1.00,1,1,2");
        assert_eq!(Chosen::read(&chosen.line()), Some(chosen.clone()));
        assert!(chosen.sentence().contains("1 of 2 families whose best"), "{}", chosen.sentence());
    }

    #[test]
    fn throughput_is_of_rates_and_of_durations() {
        let phase = |timed, end, rates: &[f64]| Phase { timed, end, rates: rates.to_vec(), ..Phase::default() };
        let run = |end, rate| Figures {
            end: super::super::End::Completed,
            counters: Default::default(),
            phases: [("a/0".into(), phase(false, end, &[])), ("a/1".into(), phase(true, 9.0, &[rate]))].into(),
        };
        let names = ["a/0".to_string(), "a/1".to_string()];
        let (slow, fast) = (throughput(&run(2.0, 100.0), &names), throughput(&run(1.0, 200.0), &names));
        assert!((fast - slow - 2f64.ln()).abs() < 1e-12);
    }
}
