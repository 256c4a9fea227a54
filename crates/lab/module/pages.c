// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Pages by the buddy allocator. An allocation without a node goes the way of alloc_pages(), which follows the memory
 * policy of the current task; one with a node prefers it whatever the policy.
 *
 * The pages held are linked through their own list heads, which belong to whoever allocated them: holding takes no
 * memory.
 */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>

#include "mmtwin.h"

/* Allocations or frees between two looks at signals and at who else wants the CPU. */
#define LOOK 64

static const gfp_t flags[MMTWIN_GFPS] = {
	[MMTWIN_GFP_ATOMIC] = GFP_ATOMIC,
	[MMTWIN_GFP_KERNEL] = GFP_KERNEL,
	[MMTWIN_GFP_HIGHUSER_MOVABLE] = GFP_HIGHUSER_MOVABLE,
	[MMTWIN_GFP_TRANSHUGE_LIGHT] = GFP_TRANSHUGE_LIGHT,
};

/* Frees all that is held. */
void mmtwin_free(struct mmtwin_file *file)
{
	struct page *page, *next;

	list_for_each_entry_safe(page, next, &file->pages, lru) {
		list_del(&page->lru);
		__free_pages(page, file->order);
		if (--file->held % LOOK == 0)
			cond_resched();
	}
}

int mmtwin_pages(struct mmtwin_file *file, struct mmtwin_pages *work)
{
	struct page *page;

	/* Above order 10 no kernel here has pages. */
	if (work->gfp >= MMTWIN_GFPS || work->order > 10 || (file->held && work->order != file->order))
		return -EINVAL;
	if (work->node != MMTWIN_NO_NODE && (work->node < 0 || work->node >= nr_node_ids || !node_online(work->node)))
		return -EINVAL;
	file->order = work->order;
	work->failed = 0;
	for (work->done = 0; work->done < work->count; work->done++) {
		if (work->done % LOOK == 0) {
			if (signal_pending(current))
				break;
			cond_resched();
		}
		if (work->node == MMTWIN_NO_NODE)
			page = alloc_pages(flags[work->gfp], work->order);
		else
			page = alloc_pages_node(work->node, flags[work->gfp], work->order);
		if (!page) {
			work->failed = 1;
			break;
		}
		list_add(&page->lru, &file->pages);
		file->held++;
		if (work->hold && file->held >= work->hold)
			mmtwin_free(file);
	}
	return 0;
}
