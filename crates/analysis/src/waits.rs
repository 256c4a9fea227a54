//! Time waited, by the name of who waited.

use crate::tasks::{Task, is_kernel_daemon};
use std::collections::BTreeMap;

/// Names kept apart; those that come later are one entry.
const MAX_NAMES: usize = 1 << 10;

/// Nanoseconds waited by name. Daemons of the kernel that reclaim or compact in the background are not in it: nobody
/// waits while they do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    by: BTreeMap<Vec<u8>, u64>,
    /// Waits.
    pub count: u64,
    /// Nanoseconds of those who came after the list was full.
    others: u64,
}

impl Waits {
    /// Adds a wait of a task.
    pub fn add(&mut self, task: &Task, ns: u64) {
        if is_kernel_daemon(task) {
            return;
        }
        self.count += 1;
        if let Some(sum) = self.by.get_mut(task.comm()) {
            *sum = sum.saturating_add(ns);
        } else if self.by.len() < MAX_NAMES {
            self.by.insert(task.comm().to_vec(), ns);
        } else {
            self.others = self.others.saturating_add(ns);
        }
    }

    /// Nanoseconds of all.
    pub fn total(&self) -> u64 {
        self.by.values().fold(self.others, |sum, ns| sum.saturating_add(*ns))
    }

    /// Name and nanoseconds of each; those beyond the list last.
    pub fn iter(&self) -> impl Iterator<Item = (String, u64)> {
        let name = |comm: &[u8]| match comm {
            b"" => "<...>".to_string(),
            comm => String::from_utf8_lossy(comm).into_owned(),
        };
        let others = (self.others > 0).then(|| (crate::tasks::OTHERS.to_string(), self.others));
        self.by.iter().map(move |(comm, ns)| (name(comm), *ns)).chain(others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::Tasks;
    use crate::testing::EventBuilder;
    use mmtwin_event::Kind;

    #[test]
    fn waits_add_up_by_name_and_daemons_do_not_wait() {
        let (mut tasks, mut waits) = (Tasks::default(), Waits::default());
        for (pid, comm, ns) in
            [(1, &b"dd"[..], 5), (2, b"dd", 6), (3, b"tar", 1), (4, b"kswapd1", 100), (5, b"kcompactd0", 100)]
        {
            let task = tasks.of(&EventBuilder::new(Kind::MmVmscanThrottled).pid(pid).comm(comm).event()).clone();
            waits.add(&task, ns);
        }
        assert_eq!(waits.iter().collect::<Vec<_>>(), [("dd".to_string(), 11), ("tar".to_string(), 1)]);
        assert_eq!((waits.total(), waits.count), (12, 3));
    }
}
