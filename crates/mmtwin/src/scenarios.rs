//! Whether inputs ran the same scenario, and where those that they ran differ.

use crate::Analysed;
use crate::scenario::from_json;
use serde_json::Value;
use std::borrow::Borrow;

/// Most differences that a note names, and characters of each.
const SHOWN: usize = 6;
const LENGTH: usize = 100;

/// A recorded scenario with the keys of today: older names are translated, and what could not be said then has its
/// default. One that cannot be read stays as it is.
pub fn of_today(recorded: &Value) -> Value {
    from_json(recorded).map_or_else(|_| recorded.clone(), |scenario| scenario.to_json())
}

/// Where two resolved scenarios differ, as `key: a against b`, but for what does not decide a run.
pub fn differences(a: &Value, b: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect(a, b, String::new(), &mut found);
    found
}

fn collect(a: &Value, b: &Value, path: String, found: &mut Vec<String>) {
    if ["title", "machine.name", "machine.figure", "run.seed"].contains(&path.as_str()) {
        return;
    }
    let below = |key: &str| if path.is_empty() { key.to_string() } else { format!("{path}.{key}") };
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let mut keys: Vec<&String> = a.keys().chain(b.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                let side = |object: &serde_json::Map<String, Value>| object.get(key).cloned().unwrap_or_default();
                collect(&side(a), &side(b), below(key), found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (i, (a, b)) in a.iter().zip(b).enumerate() {
                let name = |value: &Value| value.get("name").and_then(Value::as_str).map(str::to_owned);
                // What has a name is named, as `--set` does.
                let same = name(a).filter(|_| name(a) == name(b));
                collect(a, b, below(&same.unwrap_or_else(|| format!("#{i}"))), found);
            }
        }
        _ if a == b => {}
        _ => found.push(format!("{path}: {a} against {b}")),
    }
}

/// What a comparison says of inputs that ran other scenarios than the first, a note for each way to differ; `None` if one
/// of them ran none.
pub(crate) fn notes<A: Borrow<Analysed>>(columns: &[(&str, &[A])]) -> Option<Vec<String>> {
    let mut inputs =
        columns.iter().flat_map(|(name, inputs)| inputs.iter().map(move |input| (*name, inputs.len(), input.borrow())));
    let (base_name, base_runs, base) = inputs.next()?;
    let name = |column: &str, runs: usize, input: &Analysed| match runs {
        1 => column.to_string(),
        _ => input.analysis.source.name.clone(),
    };
    let (mut ways, first) = (Vec::<(Vec<String>, Vec<&str>, Vec<String>)>::new(), of_today(base.resolved.as_ref()?));
    for (column, runs, other) in inputs {
        let found = differences(&first, &of_today(other.resolved.as_ref()?));
        if found.is_empty() {
            continue;
        }
        match ways.iter_mut().find(|(known, ..)| *known == found) {
            Some((_, columns, names)) => {
                columns.extend(Some(column).filter(|column| !columns.contains(column)));
                names.push(name(column, runs, other));
            }
            None => ways.push((found, vec![column], vec![name(column, runs, other)])),
        }
    }
    let note = |(found, in_columns, names): (Vec<String>, Vec<&str>, Vec<String>)| {
        let more = found.len().checked_sub(SHOWN).filter(|more| *more > 0);
        let more = more.map_or_else(String::new, |more| format!("; and {more} more"));
        let shown: Vec<String> = found.iter().take(SHOWN).map(|one| shortened(one)).collect();
        // Where all runs of the columns differ in the same way, the names of the columns are enough.
        let runs: usize =
            columns.iter().filter(|(name, _)| in_columns.contains(name)).map(|(_, runs)| runs.len()).sum();
        let whole = runs == names.len() && !in_columns.contains(&base_name);
        let others = if whole { in_columns.join(", ") } else { names.join(", ") };
        let first = if whole { base_name.to_string() } else { name(base_name, base_runs, base) };
        if whole && columns.len() == 2 {
            return format!("different scenarios: {}{more}", shown.join("; "));
        }
        format!("{first} and {others} ran different scenarios: {}{more}", shown.join("; "))
    };
    Some(ways.into_iter().map(note).collect())
}

/// A whole list of processes may differ.
fn shortened(difference: &str) -> String {
    match difference.char_indices().nth(LENGTH) {
        Some((end, _)) => format!("{}...", &difference[..end]),
        None => difference.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;
    use serde_json::json;

    #[test]
    fn differences_have_their_place() {
        let a = json!({"kernel": {"thp": "never", "hz": 250}, "process": [{"threads": 1}], "run": {"seed": 1}});
        let b = json!({"kernel": {"thp": "always", "hz": 250}, "process": [{"threads": 2}], "run": {"seed": 2}});
        assert_eq!(
            differences(&a, &b),
            ["kernel.thp: \"never\" against \"always\"", "process.#0.threads: 1 against 2"]
        );
    }

    #[test]
    fn a_recording_without_a_key_of_today_ran_its_default() {
        let text = "[machine]\n[[machine.node]]\ncpus = \"0\"\nmemory = \"64 MiB\"\n[kernel]\nrelease = \"6.1\"\n";
        let today = Scenario::parse(text, &[]).unwrap_or_else(|e| panic!("{e}")).to_json();
        let mut older = today.clone();
        older["machine"].as_object_mut().expect("a table").remove("worker").expect("a key of today");
        assert!(!differences(&older, &today).is_empty());
        assert_eq!(differences(&of_today(&older), &today), Vec::<String>::new());
        assert_eq!(of_today(&json!({"machine": 1})), json!({"machine": 1}));
    }
}
