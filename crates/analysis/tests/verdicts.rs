//! Precision and recall of findings over labelled recordings; `tests/verdicts/README.md` says what a label means.

use mmtwin_analysis::Analysis;
use mmtwin_analysis::findings::{Finding, RULES, all};
use mmtwin_trace::input::{InputFile, Options};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Below, the tool misleads more often than one time in twenty.
const REQUIRED: f64 = 0.95;

struct Label {
    name: String,
    lines: BTreeMap<String, String>,
}

impl Label {
    fn read(path: &Path) -> Label {
        let text = std::fs::read_to_string(path).expect("a label");
        let line = |line: &str| {
            let (key, value) = line.split_once(": ").unwrap_or_else(|| panic!("{path:?}: {line}"));
            (key.to_string(), value.to_string())
        };
        let lines: BTreeMap<String, String> = text.lines().map(line).collect();
        let known = ["what", "input", "counters", "problem", "noted", "open"];
        assert!(lines.keys().all(|key| known.contains(&key.as_str())), "{path:?}");
        Label { name: path.file_stem().expect("a name").to_string_lossy().into_owned(), lines }
    }

    fn keys(&self, line: &str) -> Vec<&str> {
        let keys = self.lines.get(line).map_or(Vec::new(), |keys| keys.split(", ").collect());
        for key in &keys {
            assert!(RULES.iter().any(|rule| rule.key == *key), "{}: {key} is no finding", self.name);
        }
        keys
    }

    fn findings(&self) -> Vec<Finding> {
        let here = directory();
        let packed = format!("{}.tar.zst", self.name);
        let input = here.join(self.lines.get("input").unwrap_or(&packed));
        let saved = |when: &str| self.lines.get("counters").map(|base| here.join(format!("{base}.{when}.vmstat")));
        let counters = saved("before").zip(saved("after")).map(|(b, a)| (b.into_os_string(), a.into_os_string()));
        let mut analysis = Analysis::default();
        let mut file = InputFile::open(&input).unwrap_or_else(|e| panic!("{input:?}: {e}"));
        let options = Options { counters, ..Options::default() };
        let read = file.input(&options).and_then(|input| input.read(&mut analysis));
        let outcome = read.unwrap_or_else(|e| panic!("{input:?}: {e}"));
        assert_eq!(outcome.cuts(), Vec::<String>::new(), "{input:?}");
        all(&analysis)
    }
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/verdicts")
}

/// Right and wrong verdicts, with words for the wrong ones.
#[derive(Default)]
struct Count {
    right: u32,
    missed: Vec<String>,
    false_positives: Vec<String>,
}

impl Count {
    fn add(&mut self, label: &Label) {
        let findings = label.findings();
        let (problem, noted, open) = (label.keys("problem"), label.keys("noted"), label.keys("open"));
        for (keys, harmless) in [(&problem, false), (&noted, true)] {
            for key in keys {
                match findings.iter().find(|f| f.key == *key) {
                    Some(found) if found.is_harmless() == harmless => self.right += 1,
                    Some(found) => self.missed.push(format!("{}: {key} with {}", label.name, found.severity)),
                    None => self.missed.push(format!("{}: {key}", label.name)),
                }
            }
        }
        for found in findings.iter().filter(|f| !f.is_harmless()) {
            if !problem.contains(&found.key) && !open.contains(&found.key) {
                let cost = found.cost.as_ref().map_or(String::new(), |cost| cost.words());
                let words = format!("{}: {} {} {}; {cost}", label.name, found.key, found.severity, found.sentence);
                self.false_positives.push(words);
            }
        }
        // What needs no action never stands before what does.
        assert!(findings.is_sorted_by(|a, b| a.severity >= b.severity), "{}", label.name);
    }

    fn precision(&self) -> f64 {
        f64::from(self.right) / (f64::from(self.right) + self.false_positives.len() as f64)
    }

    fn recall(&self) -> f64 {
        f64::from(self.right) / (f64::from(self.right) + self.missed.len() as f64)
    }
}

#[test]
fn verdicts_are_right() {
    let mut labels: Vec<PathBuf> = std::fs::read_dir(directory())
        .expect("the corpus")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "label"))
        .collect();
    labels.sort();
    let mut count = Count::default();
    labels.iter().for_each(|path| count.add(&Label::read(path)));
    let (precision, recall) = (count.precision(), count.recall());
    println!("{} recordings, {} right, precision {precision:.3}, recall {recall:.3}", labels.len(), count.right);
    let wrong = format!("missed: {:#?}\nfalse: {:#?}", count.missed, count.false_positives);
    println!("{wrong}");
    assert!(precision >= REQUIRED && recall >= REQUIRED, "precision {precision:.3}, recall {recall:.3}\n{wrong}");
}
