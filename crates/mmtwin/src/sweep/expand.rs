//! From keys with their values to cases.

use super::{Fault, Request, cases, values};
use std::path::Path;

/// Most runs of a sweep.
const MOST: usize = 100_000;

/// A key with its values.
struct Axis {
    key: String,
    values: Vec<String>,
}

/// A case: its values, and its line in the file of cases if it is from one.
pub(super) type Case = (Vec<String>, Option<usize>);

/// Keys and cases: those of `--set` first, the last key advancing fastest.
pub(super) fn expand(request: &Request<'_>) -> Result<(Vec<String>, Vec<Case>), Vec<Fault>> {
    let mut faults = Vec::new();
    let mut axes: Vec<Axis> = Vec::new();
    for (number, set) in request.sets.iter().enumerate() {
        match axis(set, &axes) {
            Ok(axis) => axes.push(axis),
            Err(message) => faults.push(Fault { place: format!("--set {}", number + 1), message }),
        }
    }
    let file = request.cases.map(|path| read(path, &axes, &mut faults));
    if !faults.is_empty() {
        return Err(faults);
    }
    let of_sets = if request.paired { paired(&axes)? } else { combined(&axes)? };
    let mut keys: Vec<String> = axes.into_iter().map(|axis| axis.key).collect();
    let (more, lines) = match file.flatten() {
        Some(cases) => (cases.keys, cases.lines.into_iter().map(|(case, line)| (case, Some(line))).collect()),
        None => (Vec::new(), vec![(Vec::new(), None)]),
    };
    keys.extend(more);
    if of_sets.len() * lines.len() * request.seeds.len().max(1) > MOST {
        return Err(too_many());
    }
    let with = |case: &Vec<String>| {
        lines.iter().map(|(more, line): &Case| ([&case[..], more].concat(), *line)).collect::<Vec<Case>>()
    };
    Ok((keys, of_sets.iter().flat_map(with).collect()))
}

fn too_many() -> Vec<Fault> {
    vec![Fault { place: "sweep".into(), message: format!("more than {MOST} runs") }]
}

fn axis(set: &str, before: &[Axis]) -> Result<Axis, String> {
    let (key, text) = set.split_once('=').ok_or(format!("`{set}`: expected KEY=VALUES"))?;
    let key = key.trim();
    if before.iter().any(|axis| axis.key == key) {
        return Err(format!("{key} is there twice: all its values belong to one --set"));
    }
    if key == SEED {
        return Err(format!("{SEED}: several seeds are --seeds"));
    }
    let values = values::values(text).map_err(|message| format!("{key}: {message}"))?;
    Ok(Axis { key: key.into(), values })
}

/// Each run has its seed as a column of its own.
const SEED: &str = "run.seed";

fn read(path: &Path, axes: &[Axis], faults: &mut Vec<Fault>) -> Option<cases::Cases> {
    let mut fault = |line: Option<usize>, message: String| {
        let line = line.map_or(String::new(), |line| format!(":{line}"));
        faults.push(Fault { place: format!("{}{line}", path.display()), message });
    };
    let text = std::fs::read_to_string(path).map_err(|error| fault(None, error.to_string())).ok()?;
    match cases::read(&text) {
        Ok(cases) => {
            for key in &cases.keys {
                if axes.iter().any(|axis| axis.key == *key) {
                    fault(Some(1), format!("{key} is a key of --set too"));
                } else if key == SEED {
                    fault(Some(1), format!("{SEED}: several seeds are --seeds"));
                }
            }
            Some(cases)
        }
        Err(wrong) => {
            wrong.into_iter().for_each(|(line, message)| fault(Some(line), message));
            None
        }
    }
}

/// Every combination.
fn combined(axes: &[Axis]) -> Result<Vec<Vec<String>>, Vec<Fault>> {
    let mut cases = vec![Vec::new()];
    for axis in axes {
        if cases.len() * axis.values.len() > MOST {
            return Err(too_many());
        }
        let longer = |case: &Vec<String>| {
            axis.values.iter().map(|value| [&case[..], std::slice::from_ref(value)].concat()).collect::<Vec<_>>()
        };
        cases = cases.iter().flat_map(longer).collect();
    }
    Ok(cases)
}

/// The first values together, the second, and so on; a single value goes with all.
fn paired(axes: &[Axis]) -> Result<Vec<Vec<String>>, Vec<Fault>> {
    let longest = axes.iter().map(|axis| axis.values.len()).max().unwrap_or(1);
    let other = axes.iter().filter(|axis| ![1, longest].contains(&axis.values.len()));
    let faults: Vec<Fault> = other
        .map(|axis| Fault {
            place: "--paired".into(),
            message: format!("{} has {} values, another key {longest}", axis.key, axis.values.len()),
        })
        .collect();
    if !faults.is_empty() {
        return Err(faults);
    }
    let case = |at: usize| axes.iter().map(|axis| axis.values[at.min(axis.values.len() - 1)].clone()).collect();
    Ok((0..longest).map(case).collect())
}
