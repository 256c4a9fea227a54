//! What is asked, and what of a survey answers it.

use super::target::Target;
use super::{Survey, Wait, cgroup, list, oom, refault};
use crate::explain::Chain;
use crate::explain::find::NotFound;
use crate::findings::words::time;
use mmtwin_event::words::nearest;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// The longest waits.
    Longest,
    /// One wait.
    Stall(Which),
    /// The waits of a task, by name or thread id.
    Task(String),
    /// Why pages came back.
    Refault,
    /// Why processes were killed.
    Oom,
    /// What happened to a cgroup, by its path or the end of it.
    Cgroup(String),
}

/// Which wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The n-th longest, from 1.
    Nth(usize),
    /// That at a time of the trace clock in nanoseconds, else the next one.
    At(u64),
    /// The same, so many nanoseconds after the start of the recording.
    After(u64),
}

/// What answers.
#[derive(Debug)]
pub enum Answer {
    /// An explanation.
    Chain(Box<Chain>),
    /// A second reading that follows a wait.
    Follow(Box<Target>),
}

impl Survey {
    /// The answer, or why there is none.
    ///
    /// # Errors
    /// If there is nothing of what is asked: it says what there is.
    pub fn answer(&self, question: &Question) -> Result<Answer, NotFound> {
        let chain = |chain: Chain| Answer::Chain(Box::new(chain));
        Ok(match question {
            Question::Longest => chain(list::longest(self)),
            Question::Task(name) => chain(list::of_task(self, name)?),
            Question::Stall(which) => {
                let (rank, wait) = self.stall(*which)?;
                Answer::Follow(Box::new(Target::new(self, rank, wait.clone())))
            }
            Question::Refault => chain(refault::explain(self)?),
            Question::Oom => chain(oom::explain(self)?),
            Question::Cgroup(path) => chain(cgroup::explain(self, path)?),
        })
    }

    /// A wait and its rank among the longest, from 1.
    fn stall(&self, which: Which) -> Result<(usize, &Wait), NotFound> {
        let waits = self.longest();
        if waits.is_empty() {
            return Err(NotFound::Unknown(list::nothing(self)));
        }
        match which {
            Which::Nth(n) => n.checked_sub(1).and_then(|i| Some((n, *waits.get(i)?))).ok_or_else(|| {
                NotFound::Unknown(format!("no wait {n}: the {} longest are kept, 1 is the longest", waits.len()))
            }),
            Which::At(at) => near(&waits, at, at, self.begins()),
            Which::After(ns) => near(&waits, self.begins().saturating_add(ns), ns, self.begins()),
        }
    }
}

/// The wait that holds a time, the longest of several, or else the next that begins.
fn near<'a>(waits: &[&'a Wait], at: u64, asked: u64, start: u64) -> Result<(usize, &'a Wait), NotFound> {
    let holds = waits.iter().position(|wait| (wait.from..=wait.until).contains(&at));
    let next = || {
        let later = waits.iter().enumerate().filter(|(_, wait)| wait.from > at);
        later.min_by_key(|(_, wait)| wait.from).map(|(i, _)| i)
    };
    let found = holds.or_else(next).and_then(|i| Some((i + 1, *waits.get(i)?)));
    found.ok_or_else(|| {
        let last = waits.iter().map(|wait| wait.until).max().unwrap_or(start);
        NotFound::Unknown(format!(
            "no wait at or after {}: the last ends {} after the start, at {}",
            crate::explain::figures::seconds(asked),
            time(last.saturating_sub(start) as f64),
            crate::explain::figures::seconds(last)
        ))
    })
}

/// The one of some names that is meant, or what there is.
pub(super) fn named<'a>(what: &str, wanted: &str, known: &[&'a str]) -> Result<&'a str, NotFound> {
    if let Some(name) = known.iter().find(|name| **name == wanted) {
        return Ok(name);
    }
    let ends: Vec<&&str> = known.iter().filter(|name| name.ends_with(wanted) && !wanted.is_empty()).collect();
    if let [one] = ends.as_slice() {
        return Ok(one);
    }
    let near = nearest(wanted, known.iter().copied());
    let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    let listed = known.iter().take(8).copied().collect::<Vec<_>>().join(", ");
    let more = known.len().checked_sub(8).filter(|n| *n > 0).map_or(String::new(), |n| format!(" and {n} more"));
    Err(NotFound::Unknown(match known.is_empty() {
        true => format!("no {what} `{wanted}`: the recording has none"),
        false => format!("no {what} `{wanted}`; the recording has {listed}{more}{near}"),
    }))
}
