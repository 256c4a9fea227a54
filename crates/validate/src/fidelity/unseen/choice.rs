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

/// Values of the kernel differ clearly if their throughput differs by more than this, in percent.
const CLEAR: f64 = 3.0;

/// A family beside the twin.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// Its tunable.
    pub of: String,
    /// Its values with the logarithm of the throughput of the kernel and the twin; empty: a run did not end by itself.
    pub members: Vec<(String, f64, f64)>,
    /// Kendall's tau of all pairs of values; `None`: all are equal on the kernel, or a run did not end by itself.
    pub tau: Option<f64>,
    /// The same of pairs that differ clearly on the kernel; `None`: no pair does.
    pub clear: Option<f64>,
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
    seeds_of(directory, set, "family-")?.into_iter().map(|seed| family(directory, seed)).collect()
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
            return Ok(Choice { of, members: Vec::new(), tau: None, clear: None, best: None });
        }
        let common = |name: &&String| all.iter().all(|run| run.phases.contains_key(*name));
        let names: Vec<String> = all[0].phases.keys().filter(common).cloned().collect();
        let member = |(value, pairs): &(String, Vec<(Figures, Figures)>)| {
            let mean = |of: &dyn Fn(&(Figures, Figures)) -> f64| pairs.iter().map(of).sum::<f64>() / pairs.len() as f64;
            let kernel = mean(&|(kernel, _)| throughput(kernel, &names));
            (value.clone(), kernel, mean(&|(_, twin)| throughput(twin, &names)))
        };
        Ok(Choice { of, ..Choice::by(runs.iter().map(member).collect()) })
    }

    /// The family in a line: by how much values differ from the first.
    pub fn line(&self) -> String {
        let mut text = format!("- {}:", self.of);
        let Some((_, kernel, twin)) = self.members.first() else { return text + " a run did not end by itself" };
        let percent = |by: f64| 100.0 * by.exp_m1();
        for (value, of_kernel, of_twin) in &self.members {
            let (by_kernel, by_twin) = (percent(of_kernel - kernel), percent(of_twin - twin));
            let _ = write!(text, " {value} {by_kernel:+.1} % (twin {by_twin:+.1} %),");
        }
        let tau = self.tau.map_or_else(|| "n/a".into(), |tau| format!("{tau:.2}"));
        text + &format!(" tau {tau}")
    }

    fn by(members: Vec<(String, f64, f64)>) -> Choice {
        let clear = (1.0 + CLEAR / 100.0).ln();
        let (kernel, twin): (Vec<f64>, Vec<f64>) = members.iter().map(|(_, kernel, twin)| (*kernel, *twin)).unzip();
        let all = (tau(&kernel, &twin, 0.0), tau(&kernel, &twin, clear), best(&kernel, &twin, clear));
        Choice { of: String::new(), members, tau: all.0, clear: all.1, best: all.2 }
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

/// Kendall's tau of pairs that differ on the kernel by more than `least`; a pair that is equal on the twin counts as
/// neither. `None`: there is no such pair.
fn tau(kernel: &[f64], twin: &[f64], least: f64) -> Option<f64> {
    let (mut sum, mut pairs) = (0.0, 0);
    for a in 0..kernel.len() {
        for b in a + 1..kernel.len() {
            let (of_kernel, of_twin) = (kernel[b] - kernel[a], twin[b] - twin[a]);
            if of_kernel.abs() > least {
                pairs += 1;
                sum += if of_twin == 0.0 { 0.0 } else { (of_kernel * of_twin).signum() };
            }
        }
    }
    (pairs > 0).then(|| sum / f64::from(pairs))
}

fn best(kernel: &[f64], twin: &[f64], clear: f64) -> Option<bool> {
    let first = (0..kernel.len()).max_by(|&a, &b| kernel[a].total_cmp(&kernel[b]))?;
    // By how much an arm has the value that is the kernel's best above all others.
    let lead = |of: &[f64]| {
        let others = of.iter().enumerate().filter(|(number, _)| *number != first).map(|(_, value)| *value);
        others.max_by(f64::total_cmp).map(|second| of[first] - second)
    };
    (lead(kernel)? > clear).then(|| lead(twin).is_some_and(|lead| lead > 0.0))
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
            best: (bests().filter(|right| *right).count(), bests().count()),
        }
    }

    /// Columns of [`Chosen::line`].
    pub const COLUMNS: &str = "families,tau,tau_families,clear_tau,clear_tau_families,best_right,best_of";

    /// As a line of a file.
    pub fn line(&self) -> String {
        let figure = |figure: Option<f64>| figure.map_or_else(String::new, |figure| format!("{figure:.2}"));
        let Chosen { families, tau, clear, best } = self;
        let (all, clear_tau) = (figure(tau.0), figure(clear.0));
        format!("{families},{all},{},{clear_tau},{},{},{}", tau.1, clear.1, best.0, best.1)
    }

    /// From such a line.
    pub fn read(line: &str) -> Option<Chosen> {
        let cells: Vec<&str> = line.split(',').collect();
        let [families, tau, taus, clear, clears, right, of] = cells[..] else { return None };
        let figure = |text: &str| if text.is_empty() { Some(None) } else { text.parse().ok().map(Some) };
        let number = |text: &str| text.parse::<usize>().ok();
        Some(Chosen {
            families: number(families)?,
            tau: (figure(tau)?, number(taus)?),
            clear: (figure(clear)?, number(clears)?),
            best: (number(right)?, number(of)?),
        })
    }

    /// In a sentence.
    pub fn sentence(&self) -> String {
        let figure = |figure: Option<f64>| figure.map_or_else(|| "n/a".into(), |figure| format!("{figure:.2}"));
        let Chosen { families, tau, clear, best } = self;
        let mut text = format!(
            "Choice: {families} families of a scenario with a tunable at four or five values. Kendall's tau of throughput, mean: \
             {} of {} families; of pairs that differ by more than {CLEAR} % on the kernel {} of {}.",
            figure(tau.0),
            tau.1,
            figure(clear.0),
            clear.1
        );
        let _ = write!(
            text,
            " The kernel's best value is the twin's in {} of {} families whose best two differ by more than {CLEAR} %.",
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
            Choice::by(kernel.iter().zip(twin).map(|(kernel, twin)| ("4".into(), *kernel, *twin)).collect())
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
        assert_eq!(close.line(), "- : 4 +0.0 % (twin +0.0 %), 4 +1.0 % (twin +0.0 %), tau 0.00");
    }

    #[test]
    fn a_set_is_a_line_and_back() {
        let choice = |tau, clear, best| Choice { of: String::new(), members: Vec::new(), tau, clear, best };
        let of =
            [choice(Some(1.0), Some(1.0), Some(true)), choice(Some(0.5), None, None), choice(None, None, Some(false))];
        let chosen = Chosen::new(&of);
        assert_eq!(chosen.line(), "3,0.75,2,1.00,1,1,2");
        assert_eq!(Chosen::read(&chosen.line()), Some(chosen.clone()));
        assert!(chosen.sentence().contains("1 of 2 families whose"), "{}", chosen.sentence());
    }

    #[test]
    fn throughput_is_of_rates_and_of_durations() {
        let phase = |timed, end, rates: &[f64]| Phase { timed, start: 0.0, end, rates: rates.to_vec() };
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
