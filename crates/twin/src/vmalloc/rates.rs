//! The stress tests over rates: nodes, lists, works and threads are explicit, single areas are not.
//!
//! Models the drain work and `purge_vmap_node` (6.9 to 6.18; with one node the single list of 6.1) for runs too long to
//! follow every area. Between two events (a thread's next step, the end of a list's purge, the start of a pass, the
//! crossing of the limit) every thread and worker advances at a constant rate, which follows from the closed queue of
//! the contended line. Lists are whole areas, detached when a pass takes them.
//!
//! In addition to the mean-value form of [`feedback`](crate::vmalloc::feedback) this one has: three tests with their
//! own sizes and local times in each thread's own order, lists as unequal as the CPUs per node, helpers beside the
//! inline purge of the drain worker, works of one CPU one after another, threads that share a CPU with a worker, the
//! second pass that is requested by frees during the first one, and the count that falls per area or per list.
//!
//! Not modelled: pools and the free tree (an allocation never waits for them), migration of threads, time to merge.
//!
//! Validated: against single events where both run (tests/vmalloc_forms.rs), against the published latencies
//! (tests/vmalloc_purge.rs).

use super::params::{Counters, PurgeAccounting};
use super::stress::Step;
use super::{Outcome, Params, stress};
use crate::hw::line::{Customers, response};
use crate::time::{Random, Use};
use std::collections::VecDeque;

/// From here on an area counts as a whole one: sums over rates may miss it by rounding.
const WHOLE: f64 = 1.0 - 1e-6;

/// Runs the stress tests.
pub(super) fn run(params: &Params, seed: u64) -> Outcome {
    let mut run = Run::new(params, seed);
    while let Some(at) = run.next() {
        run.now = at.max(run.now);
        run.happen();
    }
    run.outcome.ran_ns = run.now as u64;
    run.outcome
}

struct Thread {
    steps: VecDeque<Step>,
    /// Rounds left of the first step.
    left: f64,
    /// Kind of the first step; `None`: the thread has ended.
    kind: Option<usize>,
    /// Where it belongs, and where it runs now.
    cpu: usize,
    runs_on: usize,
    /// Its share of the CPU.
    share: f64,
    /// Rounds per nanosecond.
    rate: f64,
}

#[derive(Clone, Copy, Default)]
struct Node {
    /// Areas and pages that wait for a pass.
    areas: f64,
    pages: f64,
    /// The list that a pass detached.
    list: u64,
    list_pages: f64,
    /// Areas per nanosecond that are added.
    rate: f64,
    page_rate: f64,
}

struct Worker {
    node: usize,
    cpu: usize,
    /// True for the drain worker, which continues with the next node.
    inline: bool,
    /// Its share of the CPU.
    share: f64,
    started: f64,
    ends: f64,
    /// Areas left, and the operation on the count at the end as additional areas.
    left: f64,
}

#[derive(Clone, Copy, PartialEq)]
enum Drain {
    Idle,
    /// Queued; starts then.
    Queued(f64),
    /// Waits for the TLB flush until then.
    Flushes(f64),
    Purges,
}

struct Run<'a> {
    p: &'a Params,
    random: Random,
    now: f64,
    /// Until when threads, nodes and workers were advanced.
    advanced: f64,
    threads: Vec<Thread>,
    /// Threads in steps of one kind behave alike, however often they repeat them.
    kinds: Vec<Step>,
    nodes: Vec<Node>,
    lazy_max: f64,
    drain: Drain,
    drain_cpu: usize,
    /// A free has requested another pass since this one began.
    again: bool,
    inline: VecDeque<usize>,
    /// Nodes whose helper has not begun, and when it may.
    helpers: Vec<(usize, f64)>,
    workers: Vec<Worker>,
    busy: Vec<bool>,
    /// Pages of taken lists that still count.
    counted: f64,
    /// Response of the lazy count's line.
    response: f64,
    next_thread: f64,
    outcome: Outcome,
}

impl<'a> Run<'a> {
    fn new(p: &'a Params, seed: u64) -> Run<'a> {
        let cpus = p.machine.online_cpus as usize;
        let thread = |thread: u32| {
            let steps: VecDeque<Step> = stress::program(&p.workload, cpus as u32, thread, seed).into();
            Thread { steps, left: 0.0, kind: None, cpu: thread as usize % cpus, runs_on: 0, share: 0.0, rate: 0.0 }
        };
        let threads: Vec<Thread> = (0..p.workload.threads).map(thread).collect();
        let nodes = p.rules.nodes(p.machine.possible_cpus) as usize;
        let mut run = Run {
            p,
            random: Random::new(seed, Use::Workload),
            now: 0.0,
            advanced: 0.0,
            threads,
            kinds: Vec::new(),
            nodes: vec![Node::default(); nodes],
            lazy_max: p.rules.lazy_max(p.machine.online_cpus) as f64,
            drain: Drain::Idle,
            drain_cpu: 0,
            again: false,
            inline: VecDeque::new(),
            helpers: Vec::new(),
            workers: Vec::new(),
            busy: vec![false; cpus],
            counted: 0.0,
            response: p.machine.line_ns,
            next_thread: f64::INFINITY,
            outcome: Outcome { nr_purged: vec![0; nodes], ..Outcome::default() },
        };
        (0..run.threads.len()).for_each(|thread| run.begin_step(thread));
        run.balance();
        run
    }

    /// When something happens next.
    fn next(&self) -> Option<f64> {
        let mut at = self.next_thread;
        match self.drain {
            Drain::Idle => at = at.min(self.crossing()),
            Drain::Queued(then) | Drain::Flushes(then) => at = at.min(then),
            Drain::Purges => {
                self.workers.iter().for_each(|worker| at = at.min(worker.ends));
                self.helpers.iter().filter(|helper| self.may_begin(helper.0)).for_each(|helper| at = at.min(helper.1));
            }
        }
        at.is_finite().then_some(at)
    }

    /// When frees cross the limit at today's rate.
    fn crossing(&self) -> f64 {
        let (pages, rate) = self.nodes.iter().fold((0.0, 0.0), |sum, n| (sum.0 + n.pages, sum.1 + n.page_rate));
        let missing = self.lazy_max - pages;
        if missing < 0.0 {
            // Parts of areas are not areas yet: somewhere a whole one must have been freed.
            let whole = |n: &Node| if n.areas >= WHOLE { 0.0 } else { (1.0 - n.areas) / n.rate };
            self.advanced + self.nodes.iter().map(whole).fold(f64::INFINITY, f64::min)
        } else if rate > 0.0 {
            // One page beyond the limit.
            self.advanced + (missing + 1.0) / rate
        } else {
            f64::INFINITY
        }
    }

    /// Works of one CPU run one after another: the drain worker's own node waits until its CPU is given up.
    fn may_begin(&self, node: usize) -> bool {
        self.cpu_of(node) != self.drain_cpu || !self.workers.iter().any(|worker| worker.inline)
    }

    /// A node's helper runs on the CPU of its number, or anywhere if there is none.
    fn cpu_of(&self, node: usize) -> usize {
        node % self.busy.len()
    }

    fn happen(&mut self) {
        if self.next_thread <= self.now {
            self.advance();
            self.end_steps();
            self.balance();
        }
        match self.drain {
            Drain::Idle if self.crossing() <= self.now => {
                self.advance();
                // Any CPU may be the one that crosses the limit. A work that is queued again while it runs stays on
                // its CPU (workqueues run a work once at a time), so only a fresh one chooses.
                self.drain_cpu = self.random.below(1, self.outcome.passes, self.busy.len() as u64) as usize;
                self.drain = Drain::Queued(self.now + 1e3 * self.p.machine.wake_us);
            }
            Drain::Queued(then) if then <= self.now => self.begin_pass(),
            Drain::Flushes(then) if then <= self.now => self.begin_works(),
            Drain::Purges => self.purge(),
            _ => {}
        }
    }

    /// Moves everything to now.
    fn advance(&mut self) {
        let dt = self.now - self.advanced;
        self.advanced = self.now;
        for thread in &mut self.threads {
            thread.left -= thread.rate * dt;
        }
        for node in &mut self.nodes {
            node.areas += node.rate * dt;
            node.pages += node.page_rate * dt;
        }
        let rate = self.purge_rate();
        for worker in &mut self.workers {
            worker.left -= worker.share * rate * dt;
        }
        if self.drain == Drain::Purges && self.p.rules.purge_accounting == PurgeAccounting::PerArea {
            self.counted = self.workers.iter().map(|worker| worker.left.max(0.0) * self.pages_per_area(worker)).sum();
            let waiting = self.inline.iter().chain(self.helpers.iter().map(|(node, _)| node));
            self.counted += waiting.map(|&node| self.nodes[node].list_pages).sum::<f64>();
        }
    }

    fn pages_per_area(&self, worker: &Worker) -> f64 {
        self.nodes[worker.node].list_pages / self.nodes[worker.node].list as f64
    }

    /// Areas per nanosecond of a worker that has its CPU alone.
    fn purge_rate(&self) -> f64 {
        let local = 1e3 * self.p.machine.purge_local_us;
        let per_area = match self.p.rules.purge_accounting {
            PurgeAccounting::PerArea => local + self.response,
            PurgeAccounting::Batched => local,
        };
        1.0 / per_area
    }

    /// Threads whose step is over take the next one.
    fn end_steps(&mut self) {
        for i in 0..self.threads.len() {
            // A rest below a thousandth of a round is rounding.
            while self.threads[i].kind.is_some() && self.threads[i].left <= 1e-3 {
                let step = self.threads[i].steps.pop_front();
                self.outcome.freed += step.map_or(0, |step| step.times * u64::from(step.freed().0));
                self.begin_step(i);
            }
        }
    }

    fn begin_step(&mut self, thread: usize) {
        let thread = &mut self.threads[thread];
        thread.kind = thread.steps.front().map(|step| {
            thread.left = step.times as f64;
            let kind = Step { times: 0, ..*step };
            self.kinds.iter().position(|known| *known == kind).unwrap_or_else(|| {
                self.kinds.push(kind);
                self.kinds.len() - 1
            })
        });
    }

    /// Sets the CPU share of every thread and worker. A thread whose CPU a worker uses moves to an idle CPU if there is
    /// one, as with the kernel's idle balancing, which does not move the worker.
    fn place(&mut self) {
        let mut threads_on = vec![0u32; self.busy.len()];
        let running = |thread: &&mut Thread| thread.kind.is_some();
        self.threads.iter_mut().filter(running).for_each(|thread| threads_on[thread.cpu] += 1);
        let mut idle = (0..self.busy.len()).filter(|&cpu| threads_on[cpu] == 0 && !self.busy[cpu]).collect::<Vec<_>>();
        for thread in self.threads.iter_mut().filter(running) {
            thread.runs_on = thread.cpu;
            if self.busy[thread.cpu]
                && let Some(cpu) = idle.pop()
            {
                threads_on[thread.cpu] -= 1;
                threads_on[cpu] += 1;
                thread.runs_on = cpu;
            }
        }
        let share = self.p.machine.worker_share;
        for thread in self.threads.iter_mut().filter(running) {
            let left = if self.busy[thread.runs_on] { 1.0 - share } else { 1.0 };
            thread.share = left / f64::from(threads_on[thread.runs_on]);
        }
        for worker in &mut self.workers {
            worker.share = if threads_on[worker.cpu] == 0 { 1.0 } else { share };
        }
    }

    /// Solves the lines for the running threads and workers, and sets all rates.
    fn balance(&mut self) {
        self.place();
        let mut counts = vec![0.0; self.kinds.len()];
        for thread in &self.threads {
            thread.kind.into_iter().for_each(|kind| counts[kind] += thread.share);
        }
        let purgers = match self.p.rules.purge_accounting {
            PurgeAccounting::PerArea => self.workers.iter().map(|worker| worker.share).sum(),
            PurgeAccounting::Batched => 0.0,
        };
        let (lazy, total) = self.solve(&counts, purgers);
        // Of every kind: nanoseconds per round, areas and pages freed per round.
        let per_round = |step: &Step| {
            let (on_lazy, on_total) = operations(self.p.rules.counters, step);
            let (areas, pages) = step.freed();
            (on_lazy * lazy + on_total * total + step.local_ns, f64::from(areas), f64::from(pages))
        };
        let rounds: Vec<(f64, f64, f64)> = self.kinds.iter().map(per_round).collect();
        self.response = lazy;
        self.nodes.iter_mut().for_each(|node| (node.rate, node.page_rate) = (0.0, 0.0));
        let nodes = self.nodes.len();
        self.next_thread = f64::INFINITY;
        for thread in &mut self.threads {
            let Some(kind) = thread.kind else {
                thread.rate = 0.0;
                continue;
            };
            let (ns, areas, pages) = rounds[kind];
            thread.rate = thread.share / ns;
            let node = &mut self.nodes[thread.runs_on % nodes];
            node.rate += thread.rate * areas;
            node.page_rate += thread.rate * pages;
            if thread.rate > 0.0 {
                self.next_thread = self.next_thread.min(self.now + thread.left / thread.rate);
            }
        }
        let rate = self.purge_rate();
        for worker in &mut self.workers {
            worker.ends = self.now + worker.left.max(0.0) / (worker.share * rate);
        }
    }

    /// Responses of the lazy count's line and of the other count's.
    fn solve(&self, counts: &[f64], purgers: f64) -> (f64, f64) {
        let m = &self.p.machine;
        let purger = Customers { count: purgers, operations: 1.0, elsewhere_ns: 1e3 * m.purge_local_us };
        let customers = |lazy: bool, elsewhere: f64| -> Vec<Customers> {
            let of = |(step, &count): (&Step, &f64)| {
                let (on_lazy, on_total) = operations(self.p.rules.counters, step);
                let (operations, others) = if lazy { (on_lazy, on_total) } else { (on_total, on_lazy) };
                Customers { count, operations, elsewhere_ns: step.local_ns + others * elsewhere }
            };
            let purger = lazy.then_some(purger);
            self.kinds.iter().zip(counts).map(of).chain(purger).collect()
        };
        if self.p.rules.counters == Counters::OneLine {
            return (response(m.line_ns, &customers(true, 0.0)), 0.0);
        }
        // Customers of a line are absent while they wait for the other one: alternate until both agree.
        let (mut lazy, mut total) = (m.line_ns, m.line_ns);
        for _ in 0..100 {
            let before = (lazy, total);
            lazy = (lazy + response(m.line_ns, &customers(true, total))) / 2.0;
            total = (total + response(m.line_ns, &customers(false, lazy))) / 2.0;
            if (lazy - before.0).abs() < 1e-9 * lazy && (total - before.1).abs() < 1e-9 * total {
                break;
            }
        }
        (lazy, total)
    }

    fn begin_pass(&mut self) {
        self.advance();
        let mut taken = 0.0;
        for node in &mut self.nodes {
            node.list = (node.areas + (1.0 - WHOLE)) as u64;
            node.list_pages = if node.list > 0 { node.pages * node.list as f64 / node.areas } else { 0.0 };
            node.areas = (node.areas - node.list as f64).max(0.0);
            node.pages -= node.list_pages;
            taken += node.list_pages;
        }
        self.counted = taken;
        self.outcome.passes += 1;
        self.outcome.most_lazy_pages = self.outcome.most_lazy_pages.max(self.count() as u64);
        self.again = self.frees_see_too_much();
        let flush = self.p.machine.tlb_flush.ns(self.p.machine.online_cpus);
        self.drain = Drain::Flushes(self.now + if taken > 0.0 { flush } else { 0.0 });
    }

    /// The lazy page count.
    fn count(&self) -> f64 {
        self.counted + self.nodes.iter().map(|node| node.pages).sum::<f64>()
    }

    /// True if threads free now and find more than allowed.
    fn frees_see_too_much(&self) -> bool {
        self.count() > self.lazy_max && self.nodes.iter().any(|node| node.rate > 0.0)
    }

    fn begin_works(&mut self) {
        self.advance();
        let with_work: VecDeque<usize> = (0..self.nodes.len()).filter(|&node| self.nodes[node].list > 0).collect();
        self.inline = with_work;
        if self.inline.is_empty() {
            return self.end_pass();
        }
        self.drain = Drain::Purges;
        let helpers = super::pass::helpers(self.count() as u64, self.lazy_max as u64, self.inline.len() as u64);
        let starts = self.now + 1e3 * self.p.machine.wake_us;
        self.helpers = self.inline.drain(..helpers as usize).map(|node| (node, starts)).collect();
        if let Some(node) = self.inline.pop_front() {
            self.begin_work(node, self.drain_cpu, Some(1.0));
        }
        self.balance();
    }

    fn begin_work(&mut self, node: usize, cpu: usize, inline_share: Option<f64>) {
        let inline = inline_share.is_some();
        let local = 1e3 * self.p.machine.purge_local_us;
        let list = self.nodes[node].list as f64;
        let left = match self.p.rules.purge_accounting {
            PurgeAccounting::PerArea => list,
            PurgeAccounting::Batched => list + self.response / local,
        };
        let share = inline_share.unwrap_or(1.0);
        let ends = self.now + left / (share * self.purge_rate());
        self.busy[cpu] = true;
        self.workers.push(Worker { node, cpu, inline, share, started: self.now, ends, left });
    }

    fn purge(&mut self) {
        let (mut ended, mut changed) = (Vec::new(), false);
        let now = self.now;
        self.workers.retain(|worker| {
            let over = worker.ends <= now;
            if over {
                ended.push((worker.node, worker.cpu, worker.inline.then_some(worker.share), worker.started));
            }
            !over
        });
        for (node, cpu, inline, started) in ended {
            self.end_work(node, (now - started) as u64);
            match inline.and_then(|_| self.inline.pop_front()) {
                Some(next) => self.begin_work(next, cpu, inline),
                None => {
                    self.busy[cpu] = self.workers.iter().any(|worker| worker.cpu == cpu);
                    changed = true;
                }
            }
        }
        let due = |helper: &(usize, f64), run: &Run<'_>| helper.1 <= now && run.may_begin(helper.0);
        let begin: Vec<usize> = self.helpers.iter().filter(|helper| due(helper, self)).map(|helper| helper.0).collect();
        if changed || !begin.is_empty() {
            self.advance();
            self.helpers.retain(|helper| !begin.contains(&helper.0));
            begin.iter().for_each(|&node| self.begin_work(node, self.cpu_of(node), None));
            self.again |= self.frees_see_too_much();
            self.balance();
        }
        if self.workers.is_empty() && self.helpers.is_empty() {
            self.end_pass();
        }
    }

    fn end_work(&mut self, node: usize, ns: u64) {
        let (list, pages) = (self.nodes[node].list, self.nodes[node].list_pages);
        self.outcome.purged += list;
        if ns > self.outcome.calls.longest_ns() {
            self.outcome.nr_purged = self.nodes.iter().map(|node| node.list).collect();
        }
        self.outcome.calls.add(ns);
        if self.p.rules.purge_accounting == PurgeAccounting::Batched {
            self.counted -= pages;
        }
    }

    fn end_pass(&mut self) {
        self.counted = 0.0;
        let again = self.again || self.frees_see_too_much();
        let something = self.nodes.iter().any(|node| node.areas >= WHOLE);
        self.outcome.passes_again += u64::from(again && something);
        self.drain = if again && something { Drain::Queued(self.now) } else { Drain::Idle };
        self.balance();
    }
}

/// Operations per round on the line of the lazy count and on that of the other count, if it has its own.
fn operations(counters: Counters, step: &Step) -> (f64, f64) {
    let (allocated, freed) = (f64::from(step.allocated()), f64::from(step.freed().0));
    match counters {
        Counters::OneLine => (allocated + 2.0 * freed, 0.0),
        Counters::Aligned => (freed, allocated + freed),
    }
}
