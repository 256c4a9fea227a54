//! The thread that writes dirty files: `wb_workfn`, `wb_do_writeback`, `wb_writeback`, `writeback_sb_inodes`,
//! `writeback_chunk_size`, `ext4_writepages` (3.2 to 6.12).
//!
//! Woken, it writes what writers of other cgroups have requested, then all dirty pages if a reclaimer has requested it,
//! then expired ones, then pages above the background limit. It writes a file from where it stopped last, in chunks of
//! half a second's bandwidth, and checks after each whether to continue. Not modelled: sync, allocation of blocks (files
//! are written where they are), dirty inodes and the file system's own blocks, integrity writes. Checked by counters of
//! guests (docs/fidelity.md) and tests of `tests/writeback.rs`.

use super::foreign::Explicit;
use super::inodes::{Inode, Left};
use super::wb::Wb;
use super::{BDI, Rules, bdi};
use crate::mm::kernel::spinlock::{Lock, percent};
use crate::mm::vmscan::{Poll, TaskCtx};
use crate::time::Ns;
use mmtwin_event::names::WRITEBACK_REASON;
use mmtwin_event::value::{Dev, WritebackReason};
use mmtwin_event::vocabulary::{WritebackPagesWritten, WritebackStart, WritebackWritten};

/// A chunk is a multiple of this many pages: 4 MiB (`MIN_WRITEBACK_PAGES`).
const CHUNK: u64 = 1024;
/// Pages that are looked up together.
const BATCH: u64 = 15;

/// Why something is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// Writers of another cgroup are above their limits.
    ForeignFlush,
    /// Too much is dirty.
    Background,
    /// Reclaim finds only dirty pages.
    Vmscan,
    /// It is old.
    Periodic,
}

impl Reason {
    /// Its name; that of reclaim was another before 4.14.
    fn named(self, then: bool) -> WritebackReason {
        let word: &[u8] = match self {
            Reason::ForeignFlush => b"foreign_flush",
            Reason::Background => b"background",
            Reason::Vmscan if then => b"try_to_free_pages",
            Reason::Vmscan => b"vmscan",
            Reason::Periodic => b"periodic",
        };
        WritebackReason(WRITEBACK_REASON.index_of(word).unwrap_or_default() as u32)
    }
}

/// A work under way (`struct wb_writeback_work`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Work {
    reason: Reason,
    /// Who has requested it.
    explicit: Option<Explicit>,
    /// Pages still to write.
    left: u64,
    /// Written, and before this turn; there was none yet if that is more than can be.
    wrote: u64,
    before: u64,
    /// When this turn began.
    turn: Ns,
}

impl Work {
    /// Files that became dirty up to then are its.
    fn up_to(&self, rules: &Rules, now: Ns) -> Ns {
        match self.reason {
            Reason::Periodic => now.saturating_sub(rules.expire),
            Reason::ForeignFlush | Reason::Background | Reason::Vmscan => now,
        }
    }
}

/// A part of a file that is being written (`struct writeback_control`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Chunk {
    inode: Inode,
    size: u64,
    left: u64,
    /// Next page to check, and the end.
    at: u64,
    end: u64,
    /// It has begun with the first page, or returned to it.
    cycled: bool,
    /// Written pages of its file's cgroup, and of another one.
    own: u64,
    others: (usize, u64),
}

/// The thread.
#[derive(Clone, Debug)]
pub(crate) struct Flusher {
    /// Whose files it writes.
    number: usize,
    stage: Stage,
    /// Written since it woke.
    wrote: u64,
    /// Pages of the request that it is making.
    run: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Asleep,
    /// Next kind of work to check.
    Look(Reason),
    Work(Work),
    Chunk(Work, Chunk),
    Finish,
}

impl Flusher {
    /// It sleeps.
    pub(crate) fn new(number: usize) -> Flusher {
        Flusher { number, stage: Stage::Asleep, wrote: 0, run: Vec::new() }
    }

    fn wb<'k>(&self, ctx: &'k mut TaskCtx<'_>) -> &'k mut Wb {
        &mut ctx.kernel.writeback.wbs[self.number]
    }

    /// Continues. `Done`: it sleeps until it is woken.
    pub(crate) fn step(&mut self, ctx: &mut TaskCtx<'_>) -> Poll<()> {
        match self.stage {
            Stage::Asleep => {
                self.wb(ctx).running = true;
                (self.wrote, self.stage) = (0, Stage::Look(Reason::ForeignFlush));
            }
            Stage::Look(reason) => return self.look(ctx, reason),
            Stage::Work(work) => self.turn(ctx, work),
            Stage::Chunk(work, chunk) => return self.write(ctx, work, chunk),
            Stage::Finish => return self.finish(ctx),
        }
        Poll::On
    }

    /// Looks whether there is work of a kind; after the last kind it sleeps.
    fn look(&mut self, ctx: &mut TaskCtx<'_>, reason: Reason) -> Poll<()> {
        let now = ctx.now();
        let (dirty, interval) = (ctx.kernel.dirty_pages(), ctx.kernel.writeback.rules.interval);
        let wb = self.wb(ctx);
        let mut explicit = None;
        let wanted = match reason {
            Reason::ForeignFlush => {
                explicit = wb.work_list.pop_front();
                explicit.map(|work| work.pages)
            }
            Reason::Vmscan if wb.start_all => Some(dirty),
            Reason::Vmscan => Some(std::mem::take(&mut wb.asked)),
            Reason::Periodic => (interval > 0 && now >= wb.last_old + interval).then(|| {
                wb.last_old = now;
                dirty
            }),
            Reason::Background => ctx.over_background(self.number).then_some(u64::MAX),
        };
        if let Some(left) = wanted.filter(|left| *left > 0 || explicit.is_some()) {
            self.stage = Stage::Work(Work { reason, explicit, left, wrote: 0, before: u64::MAX, turn: now });
            return Poll::On;
        }
        match reason {
            Reason::ForeignFlush => self.stage = Stage::Look(Reason::Vmscan),
            Reason::Vmscan => {
                self.wb(ctx).start_all = false;
                self.stage = Stage::Look(Reason::Periodic);
            }
            Reason::Periodic => self.stage = Stage::Look(Reason::Background),
            Reason::Background => self.stage = Stage::Finish,
        }
        Poll::On
    }

    /// All works are done: it sleeps, unless it was woken meanwhile.
    fn finish(&mut self, ctx: &mut TaskCtx<'_>) -> Poll<()> {
        let (at, cpu, task) = (ctx.now(), ctx.cpu, ctx.task);
        ctx.kernel.probe.write(at, cpu, task, &WritebackPagesWritten { pages: self.wrote as i64 }, b"");
        self.stage = Stage::Asleep;
        let wb = self.wb(ctx);
        wb.running = false;
        if std::mem::take(&mut wb.again) {
            return Poll::On;
        }
        ctx.kernel.writeback.wake_later(self.number, at);
        Poll::Done(())
    }

    /// A work continues with the next file, or ends.
    fn turn(&mut self, ctx: &mut TaskCtx<'_>, mut work: Work) {
        let now = ctx.now();
        let wb = self.wb(ctx);
        // Files of one turn follow each other for a tenth of a second before the limits are checked again.
        let same = work.wrote > work.before && wb.inodes.has_next() && now < work.turn + 100_000_000 && work.left > 0;
        if !same {
            if work.turn > 0 && work.wrote > 0 {
                self.note(ctx, &work, false);
            }
            let yields = matches!(work.reason, Reason::Background | Reason::Periodic);
            let ends = work.left == 0
                || yields && !self.wb(ctx).work_list.is_empty()
                || work.reason == Reason::Background && !ctx.over_background(self.number);
            // All that is dirty may be under writeback already.
            let inodes = &self.wb(ctx).inodes;
            let last = work.wrote > 0 || !inodes.has_next();
            let stuck = work.wrote == work.before && last && !inodes.has_more();
            if ends || stuck {
                return self.end(ctx, work);
            }
            (work.turn, work.before) = (now, work.wrote);
            self.note(ctx, &work, true);
        }
        let (rules, limit) = (ctx.kernel.writeback.rules, ctx.kernel.writeback.wbs[0].domain.smoothed());
        let idle = !ctx.memory.requests.write_files();
        let wb = self.wb(ctx);
        let Some(inode) = wb.inodes.next(work.up_to(&rules, now)) else { return self.end(ctx, work) };
        let (tick, counts) = (now * rules.hz / 1_000_000_000, wb.counts());
        wb.rate.settle(tick, rules.hz, counts);
        if idle {
            wb.rate.begin(tick, rules.hz, counts);
        }
        let chunk = (wb.rate.average / 2).min(limit / 8).min(work.left);
        let size = (chunk + CHUNK) / CHUNK * CHUNK;
        let region = &ctx.memory.regions[inode.region];
        let (at, end) = (region.written_up_to, region.len());
        let (own, others) = (0, (0, 0));
        self.stage = Stage::Chunk(work, Chunk { inode, size, left: size, at, end, cycled: at == 0, own, others });
    }

    fn end(&mut self, ctx: &mut TaskCtx<'_>, work: Work) {
        self.wrote += work.wrote;
        if let Some(explicit) = work.explicit {
            ctx.kernel.writeback.flushed(self.number, explicit);
        }
        let wb = self.wb(ctx);
        self.stage = match work.reason {
            // There may be another.
            Reason::ForeignFlush => Stage::Look(Reason::ForeignFlush),
            Reason::Vmscan => {
                wb.start_all = false;
                Stage::Look(if wb.asked > 0 { Reason::Vmscan } else { Reason::Periodic })
            }
            Reason::Periodic => Stage::Look(Reason::Background),
            Reason::Background => Stage::Finish,
        };
    }

    /// Writes the next pages of a file that lie one after another.
    fn write(&mut self, ctx: &mut TaskCtx<'_>, work: Work, mut chunk: Chunk) -> Poll<()> {
        if let Some(sleep) = ctx.waits_for_room() {
            return sleep;
        }
        let region = chunk.inode.region;
        let (mut looked, mut gathered) = (0, 0);
        // The request is complete.
        let mut ends = false;
        while chunk.left > 0 && looked < BATCH && !ends {
            let next = ctx.memory.regions[region].next_dirty(chunk.at..chunk.end);
            let Some(page) = next.filter(|page| self.run.last().is_none_or(|last| last + 1 == *page)) else { break };
            looked += 1;
            chunk.at = page + 1;
            if !ctx.memory.is_under_writeback(ctx.kernel, region, page) {
                self.run.push(page);
                (chunk.left, gathered) = (chunk.left - 1, gathered + 1);
                match ctx.cgroup_of(region, page).filter(|cgroup| *cgroup != self.number) {
                    None => chunk.own += 1,
                    Some(cgroup) => chunk.others = (cgroup, chunk.others.1 + 1),
                }
                ends = self.run.len() >= ctx.kernel.writeback.rules.request_pages;
            } else {
                ends = !self.run.is_empty();
            }
        }
        let costs = &ctx.memory.costs;
        let last = &self.run[self.run.len() - gathered..];
        let mapped = last.iter().filter(|page| ctx.memory.regions[region].is_mapped_by_any(**page)).count() as u64;
        for _ in 0..gathered {
            let pages = Lock::Pages(region);
            ctx.kernel.spend_partly_locked(ctx.cpu, pages, costs.write_page, percent::WRITE_PAGE);
        }
        ctx.kernel.spend(ctx.cpu, costs.write_mapped * mapped);
        if !self.run.is_empty() && (ends || looked < BATCH || chunk.left == 0) {
            ctx.spend(ctx.memory.costs.write_request);
            ctx.write_file(region, &std::mem::take(&mut self.run));
            looked = BATCH;
        }
        if looked == 0 {
            if !chunk.cycled && chunk.left > 0 {
                // From the beginning to where it began.
                chunk = Chunk { at: 0, end: ctx.memory.regions[region].written_up_to, cycled: true, ..chunk };
                self.stage = Stage::Chunk(work, chunk);
                return Poll::On;
            }
            return self.close(ctx, work, chunk);
        }
        if chunk.left == 0 {
            return self.close(ctx, work, chunk);
        }
        self.stage = Stage::Chunk(work, chunk);
        Poll::On
    }

    /// A file's turn is over.
    fn close(&mut self, ctx: &mut TaskCtx<'_>, mut work: Work, chunk: Chunk) -> Poll<()> {
        let now = ctx.now();
        let region = &mut ctx.memory.regions[chunk.inode.region];
        region.written_up_to = if chunk.at >= region.len() { 0 } else { chunk.at };
        // Since 6.10 what is not old does not wait for more of this work.
        let rules = ctx.kernel.writeback.rules;
        let young = rules.only_expired && chunk.inode.since > work.up_to(&rules, now);
        let left = match (region.dirty() > 0, chunk.left) {
            (false, _) => Left::Nothing,
            (true, 0) if !young => Left::More,
            (true, _) => Left::IsolatedPages,
        };
        ctx.kernel.writeback.wbs[self.number].inodes.requeue(chunk.inode, left, now);
        if rules.by_cgroup {
            ctx.kernel.writeback.detach((region, chunk.inode), chunk.own, chunk.others, now);
        }
        let wrote = chunk.size - chunk.left;
        work.wrote += wrote;
        work.left = if work.left == u64::MAX { work.left } else { work.left.saturating_sub(wrote) };
        let (tick, wb) = (now * rules.hz / 1_000_000_000, self.wb(ctx));
        if wb.rate.is_due(tick, rules.hz) {
            let counts = wb.counts();
            wb.rate.update(tick, rules.hz, counts, &[]);
        }
        self.stage = Stage::Work(work);
        Poll::On
    }

    fn note(&self, ctx: &mut TaskCtx<'_>, work: &Work, start: bool) {
        let (at, cpu, task) = (ctx.now(), ctx.cpu, ctx.task);
        let nr_pages = if work.left == u64::MAX { i64::MAX } else { work.left as i64 };
        let (kupdate, background) = (work.reason == Reason::Periodic, work.reason == Reason::Background);
        let (bdi, sb_dev, sync_mode, range_cyclic) = (bdi(), Dev(0), 0, 1);
        let (kupdate, background) = (kupdate.into(), background.into());
        let reason = Some(work.reason.named(ctx.kernel.probe.old_events()));
        let cgroup_ino = Some(1 + self.number as u64);
        if start {
            let event = WritebackStart {
                bdi,
                sb_dev,
                nr_pages,
                sync_mode,
                kupdate,
                range_cyclic,
                background,
                reason,
                cgroup_ino,
            };
            ctx.kernel.probe.write(at, cpu, task, &event, BDI.as_bytes());
        } else {
            let event = WritebackWritten {
                bdi,
                sb_dev,
                nr_pages,
                sync_mode,
                kupdate,
                range_cyclic,
                background,
                reason,
                cgroup_ino,
            };
            ctx.kernel.probe.write(at, cpu, task, &event, BDI.as_bytes());
        }
    }
}
