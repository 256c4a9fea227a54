//! The sequence of events of a made-up recording: task, action, time and CPU.
//!
//! Every task has a timeline of its own, on which its reclaims follow one another; all timelines are merged by time.
//! The work of kswapd and of direct reclaim is cut into batches, as the kernel isolates pages from a list, and
//! distributed.

use super::split::{Random, shares, waits};
use super::totals::{Pages, Totals};
use super::{CPUS, Impossible};
use crate::era::Era;
use crate::value::ReclaimFlags;

/// All steps in time order.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub tasks: Vec<Task>,
    pub steps: Vec<Step>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    pub pid: i32,
    pub comm: &'static str,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// Nanoseconds.
    pub ts: u64,
    pub cpu: u32,
    /// Position in `tasks`.
    pub task: u16,
    pub what: What,
}

/// A reclaim between a start and an end event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reclaim {
    Direct,
    Memcg,
    Node,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    KswapdWake { nid: u32, order: u32 },
    KswapdSleep { nid: u32 },
    Wakeup { nid: u32, order: u32 },
    Begin { reclaim: Reclaim, order: u32 },
    End { reclaim: Reclaim, reclaimed: u64 },
    Isolate { memcg: bool, active: bool, file: bool, order: u32, scanned: u64, taken: u64 },
    Shrink { nid: u32, scanned: u64, reclaimed: u64, priority: u32, flags: u32 },
    ShrinkActive { nid: u32, taken: u64, flags: u32 },
    Write { pfn: u32, flags: u32 },
    Wait { conditional: bool, timeout: u32, delayed: u32 },
}

/// When recordings begin.
const START: u64 = 2_820_000_000_000;
/// Pages that reclaim takes from a list at once.
const BATCH: u64 = 32;
/// Most batches of a side; with more pages batches grow.
const MOST_BATCHES: u64 = 1 << 15;

static DIRECT: [Task; 6] = [
    Task { pid: 2101, comm: "dd" },
    Task { pid: 2102, comm: "dd" },
    Task { pid: 2110, comm: "usemem-2" },
    Task { pid: 31007, comm: "mmap read" },
    Task { pid: 2120, comm: "tar" },
    Task { pid: 1234567, comm: "highalloc" },
];
static KSWAPD: [Task; 2] = [Task { pid: 40, comm: "kswapd0" }, Task { pid: 41, comm: "kswapd1" }];
static WAKERS: [Task; 2] = [Task { pid: 801, comm: "sshd" }, Task { pid: 802, comm: "cron" }];
static MEMCG: [Task; 2] = [Task { pid: 901, comm: "web" }, Task { pid: 902, comm: "web" }];
static NODE: Task = Task { pid: 950, comm: "numademo" };
static RETRY: Task = Task { pid: 960, comm: "mkfs" };

impl Plan {
    /// The steps that have these totals.
    pub fn new(era: Era, totals: &Totals) -> Result<Plan, Impossible> {
        possible(totals)?;
        let mut crowd =
            Crowd { era, random: Random(totals.direct_reclaims ^ 0x6d6d), tasks: Vec::new(), steps: Vec::new() };
        crowd.direct(totals)?;
        crowd.kswapd(totals)?;
        crowd.others();
        let Crowd { tasks, mut steps, .. } = crowd;
        steps.sort_by_key(|step| step.ts);
        Ok(Plan { tasks, steps })
    }
}

fn possible(totals: &Totals) -> Result<(), Impossible> {
    let Totals { direct, kswapd, .. } = totals;
    if direct.reclaimed > direct.scanned || kswapd.reclaimed > kswapd.scanned {
        return Err(Impossible("more pages reclaimed than scanned"));
    }
    let needs = |work: bool, workers: u64| !work || workers > 0;
    if !needs(*direct != Pages::default() || totals.stalled_us > 0 || totals.wake_requests > 0, totals.direct_reclaims)
    {
        return Err(Impossible("direct reclaim without a direct reclaim"));
    }
    if !needs(*kswapd != Pages::default() || totals.awake_us > 0, totals.kswapd_wakeups) {
        return Err(Impossible("work of kswapd without a wakeup"));
    }
    Ok(())
}

/// All tasks while the plan is made.
struct Crowd {
    era: Era,
    random: Random,
    tasks: Vec<Task>,
    steps: Vec<Step>,
}

/// A task's line of time.
struct Life {
    task: u16,
    cpu: u32,
    /// Nanoseconds; always whole microseconds between two sessions.
    now: u64,
}

/// Events between a start and an end.
#[derive(Default)]
struct Session {
    /// Microseconds from begin to end.
    us: u64,
    work: Vec<What>,
}

impl Session {
    fn reclaimed(&self) -> u64 {
        self.work.iter().map(|what| if let What::Shrink { reclaimed, .. } = what { *reclaimed } else { 0 }).sum()
    }
}

impl Crowd {
    fn born(&mut self, task: Task) -> Life {
        self.tasks.push(task);
        let task = (self.tasks.len() - 1) as u16;
        let now = START + self.random.below(2000) * 1000;
        Life { task, cpu: self.random.below(CPUS.into()) as u32, now }
    }

    fn step(&mut self, life: &Life, ts: u64, what: What) {
        self.steps.push(Step { ts, cpu: life.cpu, task: life.task, what });
    }

    /// Moves a task to one of the other CPUs.
    fn move_away(&mut self, life: &mut Life) {
        life.cpu = (life.cpu + 1 + self.random.below(u64::from(CPUS) - 1) as u32) % CPUS;
    }

    /// One session: `begin`, the work evenly in between, `end` after exactly its microseconds, or never.
    fn session(&mut self, life: &mut Life, begin: What, session: &Session, end: Option<What>) {
        let first_cpu = life.cpu;
        let from = life.now + self.random.below(500);
        let until = life.now + session.us * 1000 + 500 + self.random.below(500);
        self.step(life, from, begin);
        let count = session.work.len() as u64 + 1;
        for (i, what) in (1u64..).zip(&session.work) {
            if self.random.once_in(8) {
                self.move_away(life);
            }
            let ts = from + (u128::from(until - from) * u128::from(i) / u128::from(count)) as u64;
            self.step(life, ts, *what);
        }
        if let Some(end) = end {
            if self.random.once_in(3) && life.cpu == first_cpu {
                self.move_away(life);
            }
            self.step(life, until, end);
        }
        life.now += session.us * 1000 + 1000;
    }

    fn pause(&mut self, life: &mut Life) {
        life.now += (1 + self.random.below(20_000)) * 1000;
    }

    fn direct(&mut self, totals: &Totals) -> Result<(), Impossible> {
        let mut pool = wait_steps(totals, false, &mut self.random)?;
        if totals.direct_reclaims == 0 {
            self.retry(pool);
            return Ok(());
        }
        // Some of the waits are those of an allocation that is retried, outside of reclaim.
        self.retry(pool.split_off(pool.len() - pool.len() / 3));
        // At the end one begin has no end, and another begin is followed by a second one.
        let odd = totals.direct_reclaims >= 4;
        let ended = (totals.direct_reclaims - if odd { 2 } else { 0 }) as usize;
        let count = ended + usize::from(odd);
        let mut sessions = self.sessions(&totals.direct, count, totals.stalled_us, ended);
        deal(pool, &mut sessions);
        let mut wakes = shares(totals.wake_requests, count, &mut self.random).into_iter();
        let mut lives: Vec<Life> = DIRECT.iter().take(ended).map(|task| self.born(*task)).collect();
        let turns = lives.len();
        for (i, session) in sessions.iter().enumerate() {
            let life = &mut lives[i % turns];
            let order = [0, 0, 0, 2, 3, 9][self.random.below(6) as usize];
            self.pause(life);
            for _ in 0..wakes.next().unwrap_or(0) {
                let nid = self.random.below(2) as u32;
                self.step(life, life.now, What::Wakeup { nid, order });
                life.now += 2000;
            }
            let begin = What::Begin { reclaim: Reclaim::Direct, order };
            if odd && i + 1 == ended {
                self.step(life, life.now, begin);
                life.now += 700_000;
            }
            let end = What::End { reclaim: Reclaim::Direct, reclaimed: session.reclaimed() };
            self.session(life, begin, session, (i < ended).then_some(end));
        }
        Ok(())
    }

    fn kswapd(&mut self, totals: &Totals) -> Result<(), Impossible> {
        let pool = wait_steps(totals, true, &mut self.random)?;
        let wakeups = totals.kswapd_wakeups as usize;
        let mut lives: Vec<Life> = KSWAPD.iter().take(wakeups.max(1)).map(|task| self.born(*task)).collect();
        if wakeups == 0 {
            self.idle(&mut lives[0], pool);
            return Ok(());
        }
        let ended = wakeups - usize::from(wakeups >= 3);
        let mut sessions = self.sessions(&totals.kswapd, wakeups, totals.awake_us, ended);
        deal(pool, &mut sessions);
        let turns = lives.len();
        for (i, mut session) in sessions.into_iter().enumerate() {
            let nid = (i % turns) as u32;
            let life = &mut lives[i % turns];
            self.pause(life);
            let order = [0, 0, 3][self.random.below(3) as usize];
            if self.random.once_in(2) {
                // A request of a higher order while it is awake.
                let middle = session.work.len() / 2;
                session.work.insert(middle, What::KswapdWake { nid, order: order + 1 });
            }
            let begin = What::KswapdWake { nid, order };
            self.session(life, begin, &session, (i < ended).then_some(What::KswapdSleep { nid }));
        }
        Ok(())
    }

    /// Tasks whose events are part of no sum but that of their waits.
    fn others(&mut self) {
        for task in WAKERS {
            let mut life = self.born(task);
            for _ in 0..5 {
                self.pause(&mut life);
                self.step(&life, life.now, What::Wakeup { nid: 0, order: 0 });
            }
        }
        for task in MEMCG {
            self.not_direct(task, Reclaim::Memcg);
        }
        if self.era >= Era::V6_1 {
            self.not_direct(NODE, Reclaim::Node);
        }
    }

    fn not_direct(&mut self, task: Task, reclaim: Reclaim) {
        let mut life = self.born(task);
        let pages = Pages { scanned: 640, reclaimed: 480, ..Pages::default() };
        for mut session in self.sessions(&pages, 3, 5000, 3) {
            for what in &mut session.work {
                if let What::Isolate { memcg, .. } = what {
                    *memcg = reclaim == Reclaim::Memcg;
                }
            }
            self.pause(&mut life);
            let end = What::End { reclaim, reclaimed: session.reclaimed() };
            self.session(&mut life, What::Begin { reclaim, order: 0 }, &session, Some(end));
        }
    }

    fn retry(&mut self, waits: Vec<What>) {
        let mut life = self.born(RETRY);
        self.idle(&mut life, waits);
    }

    /// Waits outside of any session.
    fn idle(&mut self, life: &mut Life, waits: Vec<What>) {
        for wait in waits {
            self.pause(life);
            self.step(life, life.now, wait);
        }
    }

    /// Sessions that handle these pages, the first `ended` of which take `us` microseconds together.
    fn sessions(&mut self, pages: &Pages, count: usize, us: u64, ended: usize) -> Vec<Session> {
        let mut times = shares(us, ended, &mut self.random);
        times.resize(count, 5000);
        let mut sessions: Vec<Session> = times.into_iter().map(|us| Session { us, work: Vec::new() }).collect();
        let batches = pages.scanned.div_ceil(BATCH).min(MOST_BATCHES).max(count as u64) as usize;
        let sizes = shares(pages.scanned, batches, &mut self.random);
        let flags = self.write_flags(pages);
        let mut flags = flags.as_slice();
        let mut sizes = sizes.as_slice();
        let (mut scanned, mut reclaimed) = (0, 0);
        let writes = shares(flags.len() as u64, count, &mut self.random);
        let batches = shares(batches as u64, count, &mut self.random);
        for ((session, batches), writes) in sessions.iter_mut().zip(batches).zip(writes) {
            let (mine, rest) = sizes.split_at(batches as usize);
            sizes = rest;
            let (mut to_write, rest) = flags.split_at(writes as usize);
            flags = rest;
            for (i, size) in mine.iter().enumerate() {
                scanned += size;
                let all = (u128::from(pages.reclaimed) * u128::from(scanned) / u128::from(pages.scanned.max(1))) as u64;
                let (now, later) = to_write.split_at(to_write.len() / (mine.len() - i));
                to_write = later;
                self.batch(session, *size, all - reclaimed, now);
                reclaimed = all;
            }
            for flags in to_write {
                session.work.push(self.write(*flags));
            }
        }
        sessions
    }

    /// One batch of pages: taken from a list, some written, some reclaimed.
    fn batch(&mut self, session: &mut Session, scanned: u64, reclaimed: u64, writes: &[u32]) {
        let file = self.random.once_in(2);
        let kind = if file { ReclaimFlags::FILE } else { ReclaimFlags::ANON };
        if self.era != Era::V3_5 && self.random.once_in(4) {
            let taken = self.random.below(BATCH);
            session.work.push(What::Isolate { memcg: false, active: true, file, order: 0, scanned: BATCH, taken });
            if self.era >= Era::V6_1 {
                session.work.push(What::ShrinkActive { nid: 0, taken, flags: kind | ReclaimFlags::ASYNC });
            }
        }
        let none = reclaimed == 0 && writes.is_empty() && self.era != Era::V3_5 && self.random.once_in(5);
        let taken = if none { 0 } else { reclaimed + self.random.below(scanned - reclaimed + 1) };
        let taken = taken.max(u64::from(!none && scanned > 0));
        session.work.push(What::Isolate { memcg: false, active: false, file, order: 0, scanned, taken });
        for flags in writes {
            session.work.push(self.write(*flags));
        }
        if taken == 0 {
            return;
        }
        // A synchronous pass of lumpy reclaim.
        let flags = match self.era <= Era::V3_3 && self.random.once_in(16) {
            true => ReclaimFlags::MIXED | ReclaimFlags::SYNC,
            false => kind | ReclaimFlags::ASYNC,
        };
        let priority = self.random.below(13) as u32;
        session.work.push(What::Shrink { nid: self.random.below(2) as u32, scanned, reclaimed, priority, flags });
    }

    fn write(&mut self, flags: u32) -> What {
        What::Write { pfn: 0x1000 + self.random.below(1 << 20) as u32, flags }
    }

    /// The flags of all pages to write, mixed.
    fn write_flags(&mut self, pages: &Pages) -> Vec<u32> {
        let kinds = [
            (pages.file_async, ReclaimFlags::FILE | ReclaimFlags::ASYNC),
            (pages.anon_async, ReclaimFlags::ANON | ReclaimFlags::ASYNC),
            (pages.file_sync, ReclaimFlags::FILE | ReclaimFlags::SYNC),
            (pages.anon_sync, ReclaimFlags::ANON | ReclaimFlags::SYNC),
        ];
        let mut flags: Vec<u32> = kinds.iter().flat_map(|(count, flags)| (0..*count).map(|_| *flags)).collect();
        for i in (1..flags.len()).rev() {
            flags.swap(i, self.random.below(i as u64 + 1) as usize);
        }
        flags
    }
}

/// Deals steps out to sessions in turn.
fn deal(steps: Vec<What>, sessions: &mut [Session]) {
    let count = sessions.len();
    for (i, step) in steps.into_iter().enumerate() {
        sessions[i % count].work.push(step);
    }
}

/// The waits of one side.
fn wait_steps(totals: &Totals, kswapd: bool, random: &mut Random) -> Result<Vec<What>, Impossible> {
    let [congest, conditional] = match kswapd {
        true => [totals.kswapd_congest, totals.kswapd_conditional],
        false => [totals.direct_congest, totals.direct_conditional],
    };
    let mut steps = Vec::new();
    for (wait, conditional) in [(congest, false), (conditional, true)] {
        let each = waits(&wait, random)?.into_iter();
        steps.extend(each.map(|(timeout, delayed)| What::Wait { conditional, timeout, delayed }));
    }
    Ok(steps)
}
