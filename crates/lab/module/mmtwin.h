/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * What programs and the parts of the module agree on. A program opens /dev/mmtwin once per piece of work and calls
 * ioctl(2) on it. Every number is in the machine's own byte order; all structures are without padding.
 */
#ifndef MMTWIN_H
#define MMTWIN_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Allocation flags, by number. */
enum mmtwin_gfp {
	MMTWIN_GFP_ATOMIC,
	MMTWIN_GFP_KERNEL,
	MMTWIN_GFP_HIGHUSER_MOVABLE,
	MMTWIN_GFP_TRANSHUGE_LIGHT,
	MMTWIN_GFPS,
};

/* No preferred node: the memory policy of the calling thread decides. */
#define MMTWIN_NO_NODE -1

/*
 * Allocates pages in the context of the calling thread. They are kept until `hold` allocations are held, which are
 * then all freed, last first; with a hold of 0 until the file is closed. `order` must be the same in all calls on one
 * file. Returns early, without error, when a signal is pending or an allocation fails.
 */
struct mmtwin_pages {
	__u32 gfp;
	__u32 order;
	__s32 node;
	__u32 failed;	/* out: 1 if the last allocation failed */
	__u64 hold;
	__u64 count;	/* allocations to do */
	__u64 done;	/* out: allocations that succeeded */
};

/* Tests of vmalloc, and their bits in a mask. */
enum mmtwin_test {
	MMTWIN_FIX_SIZE,
	MMTWIN_FULL_FIT,
	MMTWIN_LONG_BUSY_LIST,
	MMTWIN_TESTS,
};

struct mmtwin_result {
	__u64 loops;	/* rounds done */
	__u64 failures;	/* runs of the test in which memory could not be had */
	__u64 time;	/* nanoseconds */
};

/*
 * Runs tests of vmalloc in a kernel thread of its own, which starts when `threads` threads of the calling process have
 * made this call with the same numbers. Returns when all of them are done. At `deadline` (CLOCK_MONOTONIC, in
 * nanoseconds) or when one of the callers is killed, all stop where they are.
 */
struct mmtwin_vmalloc {
	__u32 threads;
	__u32 tests;	/* mask */
	__u32 repeat;	/* runs of each test */
	__u32 pages;	/* of each allocation of the first test */
	__u64 loops;	/* rounds of a run */
	__u64 deadline;
	__u64 start;	/* out: CLOCK_MONOTONIC when all began, 0 if they never did */
	__u64 end;	/* out: when the last was done */
	__u64 freed;	/* out: areas that this thread freed */
	struct mmtwin_result results[MMTWIN_TESTS];	/* out: of this thread */
};

#define MMTWIN_PAGES _IOWR('m', 0x40, struct mmtwin_pages)
#define MMTWIN_VMALLOC _IOWR('m', 0x41, struct mmtwin_vmalloc)

#ifdef __KERNEL__
#include <linux/list.h>
#include <linux/mutex.h>

struct mem_cgroup;
struct seq_file;

/* An open file. */
struct mmtwin_file {
	struct mutex lock;
	struct list_head pages;	/* held ones, last first */
	unsigned long held;
	unsigned int order;
};

int mmtwin_pages(struct mmtwin_file *file, struct mmtwin_pages *work);
void mmtwin_free(struct mmtwin_file *file);
int mmtwin_vmalloc(struct mmtwin_vmalloc *work);
int mmtwin_files_begin(void);
void mmtwin_files_end(void);
int mmtwin_show_pagesets(struct seq_file *file, void *unused);
int mmtwin_show_lru(struct seq_file *file, void *unused);
int mmtwin_show_shrinkers(struct seq_file *file, void *unused);
int mmtwin_show_nodes(struct seq_file *file, void *unused);
struct mem_cgroup *mmtwin_root_cgroup(void);
void *mmtwin_symbol(const char *name);
void mmtwin_stop_hpet(void);
#endif

#endif
