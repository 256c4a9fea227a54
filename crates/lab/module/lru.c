// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The LRU lists in full, as /proc/mmtwin_lru: which kinds of pages are on which list, in order. The kernel's own files
 * have their lengths only; which pages reclaim meets first, and what it does with them, depends on the rest.
 *
 * A line per node and cgroup, one per list behind it, and one per CPU and batch of folios that are on no list yet:
 *
 *   lruvec node=N cgroup=PATH anon_cost=N file_cost=N nonresident_age=N refaults_anon=N refaults_file=N
 *   list node=N cgroup=PATH name=NAME runs=RUN,...
 *   batch cpu=N name=NAME runs=NODE/RUN,...
 *
 * A run is ZONE/ORDER/FLAGS*FOLIOS: neighbours that are alike, in lists from the tail, where reclaim begins, in batches
 * in the order of entry. FLAGS are letters: a anonymous, s shmem (neither: of a file), b of a block device (metadata of
 * a file system), A active, r referenced, d dirty, w under writeback, i to be reclaimed after writeback, k workingset,
 * c swap cache, p with buffers, m mapped, x unevictable. Lists and batches that are empty are not shown, nor is the list
 * of unevictable folios, which has no order. A batch is read without its lock, so the machine has to be quiet.
 */
#include <linux/blkdev.h>
#include <linux/fs.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/seq_file.h>
#include <linux/version.h>
#if __has_include(<linux/folio_batch.h>)
#include <linux/folio_batch.h>
#else
#include <linux/pagevec.h>
#endif

#include "mmtwin.h"

#define FLAGS 16

/* The name until 6.15. */
#ifndef FOLIO_MAPPING_FLAGS
#define FOLIO_MAPPING_FLAGS PAGE_MAPPING_FLAGS
#endif

#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 3, 0)
#define ANON_COST(lruvec) ((lruvec)->cost[0].count)
#define FILE_COST(lruvec) ((lruvec)->cost[1].count)
#else
#define ANON_COST(lruvec) ((lruvec)->anon_cost)
#define FILE_COST(lruvec) ((lruvec)->file_cost)
#endif

/* Folios that look alike. */
struct run {
	int node;
	const char *zone;
	unsigned int order;
	char flags[FLAGS];
	unsigned int folios;
};

static void look(struct folio *folio, struct run *run)
{
	struct address_space *mapping = READ_ONCE(folio->mapping);
	bool of_file = mapping && !((unsigned long)mapping & FOLIO_MAPPING_FLAGS);
	char *flag = run->flags;

	run->node = folio_nid(folio);
	run->zone = folio_zone(folio)->name;
	run->order = folio_order(folio);
	if (folio_test_anon(folio))
		*flag++ = 'a';
	else if (folio_test_swapbacked(folio))
		*flag++ = 's';
	else if (of_file && S_ISBLK(mapping->host->i_mode))
		*flag++ = 'b';
	if (folio_test_active(folio))
		*flag++ = 'A';
	if (folio_test_referenced(folio))
		*flag++ = 'r';
	if (folio_test_dirty(folio))
		*flag++ = 'd';
	if (folio_test_writeback(folio))
		*flag++ = 'w';
	if (folio_test_reclaim(folio))
		*flag++ = 'i';
	if (folio_test_workingset(folio))
		*flag++ = 'k';
	if (folio_test_swapcache(folio))
		*flag++ = 'c';
	if (folio_test_private(folio))
		*flag++ = 'p';
	if (atomic_read(&folio->_mapcount) >= 0)
		*flag++ = 'm';
	if (folio_test_unevictable(folio))
		*flag++ = 'x';
	*flag = 0;
	run->folios = 1;
}

static bool alike(const struct run *a, const struct run *b)
{
	return a->node == b->node && a->zone == b->zone && a->order == b->order && !strcmp(a->flags, b->flags);
}

static void show_run(struct seq_file *file, const struct run *run, bool with_node, bool *first)
{
	if (!run->folios)
		return;
	if (!*first)
		seq_putc(file, ',');
	*first = false;
	if (with_node)
		seq_printf(file, "%d/", run->node);
	seq_printf(file, "%s/%u/%s*%u", run->zone, run->order, run->flags, run->folios);
}

/* Adds a folio to the run, which is shown when it ends. */
static void add(struct seq_file *file, struct run *run, struct folio *folio, bool with_node, bool *first)
{
	struct run next;

	look(folio, &next);
	if (run->folios && alike(run, &next)) {
		run->folios++;
		return;
	}
	show_run(file, run, with_node, first);
	*run = next;
}

static void show_lruvec(struct seq_file *file, int node, const char *path, struct lruvec *lruvec)
{
	static const char *const names[] = { "inactive_anon", "active_anon", "inactive_file", "active_file" };
	struct folio *folio;
	unsigned int list;

	spin_lock_irq(&lruvec->lru_lock);
	seq_printf(file, "lruvec node=%d cgroup=%s anon_cost=%lu file_cost=%lu nonresident_age=%ld ", node, path,
		   ANON_COST(lruvec), FILE_COST(lruvec), atomic_long_read(&lruvec->nonresident_age));
	seq_printf(file, "refaults_anon=%lu refaults_file=%lu\n", lruvec->refaults[0], lruvec->refaults[1]);
	for (list = 0; list < ARRAY_SIZE(names); list++) {
		struct run run = {};
		bool first = true;

		if (list_empty(&lruvec->lists[list]))
			continue;
		seq_printf(file, "list node=%d cgroup=%s name=%s runs=", node, path, names[list]);
		list_for_each_entry_reverse(folio, &lruvec->lists[list], lru)
			add(file, &run, folio, false, &first);
		show_run(file, &run, false, &first);
		seq_putc(file, '\n');
	}
	spin_unlock_irq(&lruvec->lru_lock);
}

static void show_batch(struct seq_file *file, int cpu, const char *name, struct folio_batch *batch)
{
	struct run run = {};
	bool first = true;
	unsigned int i;

	if (!folio_batch_count(batch))
		return;
	seq_printf(file, "batch cpu=%d name=%s runs=", cpu, name);
	for (i = 0; i < folio_batch_count(batch); i++)
		add(file, &run, batch->folios[i], true, &first);
	show_run(file, &run, true, &first);
	seq_putc(file, '\n');
}

static void show_batches(struct seq_file *file)
{
	/* Batches of a CPU lie one behind the other; their lock has no size. */
	static const char *const names[] = { "lru_add", "deactivate_file", "deactivate", "lazyfree", "activate" };
	struct folio_batch __percpu *batches = (void __percpu *)(uintptr_t)mmtwin_symbol("cpu_fbatches");
	unsigned int i;
	int cpu;

	if (!batches)
		return;
	for_each_online_cpu(cpu) {
		for (i = 0; i < ARRAY_SIZE(names); i++)
			show_batch(file, cpu, names[i], per_cpu_ptr(batches, cpu) + i);
	}
}

int mmtwin_show_lru(struct seq_file *file, void *unused)
{
	struct mem_cgroup *root = mmtwin_root_cgroup();
	struct cgroup_subsys_state *at;
	static char path[256];
	int node;

	if (!root)
		return -ENOENT;
	rcu_read_lock();
	css_for_each_descendant_pre(at, &root->css) {
		if (cgroup_path(at->cgroup, path, sizeof(path)) < 0)
			continue;
		for_each_online_node(node)
			show_lruvec(file, node, path, mem_cgroup_lruvec(mem_cgroup_from_css(at), NODE_DATA(node)));
	}
	rcu_read_unlock();
	show_batches(file);
	return 0;
}
