// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Tests of vmalloc. What each of them allocates, keeps and frees, and in which order, is that of lib/test_vmalloc.c
 * (6.1, 6.12). Differences: the threads wait for each other inside the call that starts them, a test can be stopped,
 * its time is in nanoseconds, and areas are had by vmalloc(), for what the kernel's test uses is not exported.
 */
#include <linux/completion.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/mutex.h>
#include <linux/random.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "mmtwin.h"

/* Areas that long_busy_list_alloc_test keeps, and pages of its large allocation. */
#define BUSY 15000
#define LARGE 100
/* Rounds between two looks at the clock. */
#define LOOK 64

/* Threads that begin and end together. */
struct group {
	struct list_head link;	/* of those that wait for members */
	struct mmtwin_vmalloc wanted;
	pid_t process;
	unsigned int members;	/* that have come */
	unsigned int users;	/* that have not gone */
	atomic_t ready;
	atomic_t running;
	struct completion go;
	struct completion done;
	bool stop;
	u64 start;
	u64 end;
};

/* A thread of a group. */
struct member {
	struct group *group;
	struct mmtwin_vmalloc *work;
	u64 rounds;	/* since the last look at the clock */
};

static DEFINE_MUTEX(groups_lock);
static LIST_HEAD(groups);

/* True if a thread is to stop. Called once per round. */
static bool over(struct member *me)
{
	struct group *group = me->group;

	if (me->rounds++ % LOOK == 0) {
		cond_resched();
		if (ktime_get_ns() >= me->work->deadline)
			WRITE_ONCE(group->stop, true);
	}
	return READ_ONCE(group->stop);
}

/* An area of so many pages, of which the first byte is written. */
static void *get(unsigned int pages)
{
	char *area = vmalloc((unsigned long)pages * PAGE_SIZE);

	if (area)
		*area = 1;
	return area;
}

static void put(struct member *me, void *area)
{
	if (area) {
		vfree(area);
		me->work->freed++;
	}
}

/* Frees `count` areas; those that were never had are null. */
static void put_all(struct member *me, void **areas, unsigned long count)
{
	unsigned long i;

	for (i = 0; i < count; i++) {
		put(me, areas[i]);
		areas[i] = NULL;
		if (i % LOOK == 0)
			cond_resched();
	}
}

/* An array of pointers, by vmalloc as the areas themselves. */
static void **array(unsigned long count)
{
	return vzalloc(count * sizeof(void *));
}

/* Allocates and frees again and again. */
static int rounds(struct member *me, struct mmtwin_result *result, unsigned int pages, unsigned int more)
{
	void *first, *second;
	u64 i;

	for (i = 0; i < me->work->loops && !over(me); i++) {
		first = get(pages);
		second = more ? get(more) : NULL;
		put(me, first);
		put(me, second);
		if (!first || (more && !second))
			return -ENOMEM;
		result->loops++;
	}
	return 0;
}

static int fix_size(struct member *me, struct mmtwin_result *result)
{
	return rounds(me, result, me->work->pages, 0);
}

/* Among areas that stay there are as many holes, each of exactly the size of those that are then allocated. */
static int full_fit(struct member *me, struct mmtwin_result *result)
{
	unsigned long count = fls(num_online_cpus()) * (32UL * 1024 * 1024 / PAGE_SIZE), i;
	void **kept = array(count), **junk = array(count);
	int error = kept && junk ? 0 : -ENOMEM;

	for (i = 0; !error && i < count && !over(me); i++) {
		kept[i] = vmalloc(PAGE_SIZE);
		junk[i] = vmalloc(PAGE_SIZE);
		if (!kept[i] || !junk[i])
			error = -ENOMEM;
	}
	if (junk)
		put_all(me, junk, count);
	if (!error)
		error = rounds(me, result, 1, 0);
	if (kept)
		put_all(me, kept, count);
	put(me, kept);
	put(me, junk);
	return error;
}

static int long_busy_list(struct member *me, struct mmtwin_result *result)
{
	void **kept = array(BUSY);
	int error = kept ? 0 : -ENOMEM, i;

	for (i = 0; !error && i < BUSY && !over(me); i++) {
		kept[i] = vmalloc(PAGE_SIZE);
		if (!kept[i])
			error = -ENOMEM;
	}
	if (!error)
		error = rounds(me, result, LARGE, 1);
	if (kept)
		put_all(me, kept, BUSY);
	put(me, kept);
	return error;
}

static int (*const tests[MMTWIN_TESTS])(struct member *, struct mmtwin_result *) = {
	[MMTWIN_FIX_SIZE] = fix_size,
	[MMTWIN_FULL_FIT] = full_fit,
	[MMTWIN_LONG_BUSY_LIST] = long_busy_list,
};

/* The selected tests in an order that chance decides. */
static void run_all(struct member *me)
{
	unsigned int order[MMTWIN_TESTS], count = 0, i, other, run;
	struct mmtwin_result *result;
	u64 begin;

	for (i = 0; i < MMTWIN_TESTS; i++)
		if (me->work->tests & BIT(i))
			order[count++] = i;
	for (i = count; i > 1; i--) {
		other = get_random_u32() % i;
		swap(order[i - 1], order[other]);
	}
	for (i = 0; i < count; i++) {
		result = &me->work->results[order[i]];
		begin = ktime_get_ns();
		for (run = 0; run < me->work->repeat && !READ_ONCE(me->group->stop); run++)
			if (tests[order[i]](me, result))
				result->failures++;
		result->time = ktime_get_ns() - begin;
	}
}

static int thread(void *data)
{
	struct member *me = data;
	struct group *group = me->group;

	wait_for_completion(&group->go);
	if (!READ_ONCE(group->stop))
		run_all(me);
	if (atomic_dec_and_test(&group->running)) {
		group->end = ktime_get_ns();
		complete_all(&group->done);
	}
	/* Whoever started it takes it back. */
	for (;;) {
		set_current_state(TASK_INTERRUPTIBLE);
		if (kthread_should_stop())
			break;
		schedule();
	}
	__set_current_state(TASK_RUNNING);
	return 0;
}

static bool same(const struct mmtwin_vmalloc *a, const struct mmtwin_vmalloc *b)
{
	return a->threads == b->threads && a->tests == b->tests && a->repeat == b->repeat && a->pages == b->pages &&
	       a->loops == b->loops && a->deadline == b->deadline;
}

/* The group that waits for this caller, or a new one; null without memory. */
static struct group *join(const struct mmtwin_vmalloc *work)
{
	struct group *group;

	mutex_lock(&groups_lock);
	list_for_each_entry(group, &groups, link)
		if (group->process == current->tgid && same(&group->wanted, work) && !READ_ONCE(group->stop))
			goto found;
	group = kzalloc(sizeof(*group), GFP_KERNEL);
	if (!group)
		goto out;
	group->wanted = *work;
	group->process = current->tgid;
	atomic_set(&group->running, work->threads);
	init_completion(&group->go);
	init_completion(&group->done);
	list_add(&group->link, &groups);
found:
	group->users++;
	if (++group->members == work->threads)
		list_del_init(&group->link);
out:
	mutex_unlock(&groups_lock);
	return group;
}

static void leave(struct group *group)
{
	mutex_lock(&groups_lock);
	if (--group->users == 0) {
		list_del_init(&group->link);
		kfree(group);
	}
	mutex_unlock(&groups_lock);
}

/* Ends a group before its work is done. */
static void stop(struct group *group)
{
	WRITE_ONCE(group->stop, true);
	complete_all(&group->go);
	complete_all(&group->done);
}

static long time_left(u64 deadline)
{
	u64 now = ktime_get_ns();
	u64 ticks = deadline > now ? nsecs_to_jiffies64(deadline - now) : 0;

	return min_t(u64, ticks + 1, MAX_SCHEDULE_TIMEOUT);
}

int mmtwin_vmalloc(struct mmtwin_vmalloc *work)
{
	struct member me = { .work = work };
	struct task_struct *task;
	struct group *group;

	if (!work->threads || !work->repeat || !work->pages || !work->tests || work->tests >= BIT(MMTWIN_TESTS))
		return -EINVAL;
	work->start = work->end = work->freed = 0;
	memset(work->results, 0, sizeof(work->results));
	group = join(work);
	if (!group)
		return -ENOMEM;
	me.group = group;
	task = kthread_run(thread, &me, "vmalloc_test/%d", current->pid);
	if (IS_ERR(task)) {
		stop(group);
		leave(group);
		return PTR_ERR(task);
	}
	if (atomic_inc_return(&group->ready) == work->threads) {
		group->start = ktime_get_ns();
		complete_all(&group->go);
	}
	/* Some may never come, for their time is up before. */
	if (wait_for_completion_killable_timeout(&group->go, time_left(work->deadline)) <= 0)
		stop(group);
	if (wait_for_completion_killable(&group->done))
		stop(group);
	kthread_stop(task);
	work->start = group->start;
	work->end = group->end ? group->end : ktime_get_ns();
	leave(group);
	return 0;
}
