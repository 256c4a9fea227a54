//! A kernel of the user beside those of the series: a bundle in a file, run in every test that has the kernel it is based
//! on.

use super::{Reproduction, Study};
use crate::Error;
use mmtwin_scenario::published::{Patch, Published, Row};
use std::collections::BTreeSet;
use std::path::Path;

/// What rows of a variant begin with.
const PREFIX: &str = "variant ";

/// A bundle in a file.
#[derive(Clone, Debug)]
pub struct Variant {
    /// Name of the file without its ending.
    pub name: String,
    /// The kernel that it is based on.
    pub base: String,
    /// The file, as `kernel.release` takes it.
    path: String,
    /// Keys that it sets.
    keys: BTreeSet<String>,
}

impl Variant {
    /// Reads a bundle. Its keys and values are checked when a test is run with it.
    ///
    /// # Errors
    /// If it cannot be read, or names no base.
    pub fn load(path: &Path) -> Result<Variant, Error> {
        let failed = |message: String| Error::Variant { file: path.display().to_string(), message };
        let text = std::fs::read_to_string(path).map_err(|e| failed(e.to_string()))?;
        let table: toml::Table = text.parse().map_err(|e: toml::de::Error| failed(e.to_string()))?;
        let base = table.get("base").and_then(|base| base.as_str());
        let base =
            base.ok_or_else(|| failed("names no base: expected base = \"RELEASE\", a kernel of a series".into()))?;
        let mut keys = BTreeSet::new();
        if let Some(kernel) = table.get("kernel") {
            below(kernel, "kernel", &mut keys);
        }
        let name = path.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let mut given = path.display().to_string();
        if !given.contains('/') {
            given.insert_str(0, "./");
        }
        Ok(Variant { name, base: base.into(), path: given, keys })
    }

    /// Name of its patch on the base.
    pub fn patch(&self) -> String {
        format!("{PREFIX}{}", self.name)
    }

    /// True if a row is a run of a variant.
    pub(super) fn is_row(&self, key: &str) -> bool {
        key.starts_with(PREFIX)
    }

    /// Adds a row behind the base in every test that has it, as a column of its tables and as a patch.
    pub(super) fn insert(&self, study: &Study, published: &mut Published) -> Result<(), Error> {
        let failed = |message: String| Error::Variant { file: self.path.clone(), message };
        let mut releases = BTreeSet::new();
        let mut steps = Vec::new();
        for test in published.tests.iter_mut() {
            let mut bases: Vec<(usize, usize, Row)> = Vec::new();
            for row in published.rows.iter().filter(|row| test.rows.contains(&row.key) && row.sum.is_empty()) {
                let release = study.scenario(row, &[]).map_err(failed)?.kernel.release;
                let overrides = row.set.iter().filter(|set| set.starts_with("kernel.") && !is_release(set)).count();
                let of_patch = published.patches.iter().flat_map(|patch| patch.steps.iter().flatten());
                let place = of_patch.clone().position(|key| *key == row.key).unwrap_or(usize::MAX);
                if release == self.base {
                    bases.push((overrides, place, row.clone()));
                }
                releases.insert(release);
            }
            let Some((.., base)) = bases.into_iter().min_by_key(|(overrides, place, _)| (*overrides, *place)) else {
                continue;
            };
            let key = format!("{PREFIX}{}", base.key);
            let mut row = Row { key: key.clone(), label: self.label(&base.label, &test.label), ..base.clone() };
            row.set.retain(|set| !is_release(set) && !self.keys.iter().any(|key| set.starts_with(&format!("{key}="))));
            row.set.push(format!("kernel.release={:?}", self.path));
            row.unpublished.extend(row.values.keys().cloned());
            row.values.clear();
            let place = published.rows.iter().position(|known| known.key == base.key).unwrap_or(0);
            published.rows.insert(place + 1, row);
            for layout in published.layouts.iter_mut().filter(|layout| layout.rows.contains(&base.key)) {
                layout.rows.push(key.clone());
            }
            test.rows.push(key.clone());
            steps.push([base.key, key]);
        }
        if steps.is_empty() {
            let known = releases.into_iter().collect::<Vec<_>>().join(", ");
            let (file, base) = (self.path.clone(), self.base.clone());
            return Err(Error::NoBase { file, base, study: study.name, known });
        }
        published.patches.push(Patch { name: self.patch(), steps });
        Ok(())
    }

    /// The label of a row, with the variant in place of the kernel.
    fn label(&self, base: &str, test: &str) -> String {
        format!("{}: {}", base.rsplit_once(": ").map_or(test, |(of, _)| of), self.name)
    }
}

impl Reproduction {
    /// What must be said of a variant that nothing here exercises.
    pub fn unexercised(&self, variant: &Variant) -> Option<String> {
        let name = variant.patch();
        let steps = self.steps();
        let mut of = steps.iter().filter(|step| step.patch == name).peekable();
        of.peek()?;
        let tests: Vec<&str> = of.clone().map(|step| step.test).collect();
        of.all(|step| step.decisions.of > 0 && step.decisions.identical == step.decisions.of).then(|| {
            let keys: Vec<&str> = variant.keys.iter().map(String::as_str).filter(|key| !is_name(key)).collect();
            let keys = if keys.is_empty() {
                "it sets no rule".into()
            } else {
                format!("nothing in them depends on {}", keys.join(", "))
            };
            format!(
                "{} changes nothing in {} ({}): {keys}. Every run is the one of {}",
                variant.name,
                self.name,
                tests.join("; "),
                variant.base
            )
        })
    }
}

/// True if an override chooses the kernel.
fn is_release(set: &str) -> bool {
    set.starts_with("kernel.release=")
}

/// Keys that only name the kernel.
fn is_name(key: &str) -> bool {
    matches!(key, "kernel.release" | "kernel.version" | "kernel.events")
}

/// Keys of all values of a table.
fn below(value: &toml::Value, path: &str, keys: &mut BTreeSet<String>) {
    match value {
        toml::Value::Table(table) => table.iter().for_each(|(key, value)| below(value, &format!("{path}.{key}"), keys)),
        _ => {
            keys.insert(path.into());
        }
    }
}
