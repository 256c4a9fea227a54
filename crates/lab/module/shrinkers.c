// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The shrinkers of slab caches in the order in which reclaim calls them, as /proc/mmtwin_shrinkers. A line each and,
 * for those that count by node, for each node:
 *
 *   name=FUNCTION of=FILESYSTEM node=N objects=N deferred=N seeks=N batch=N flags=FLAGS
 *
 * FUNCTION is what shrinks. `of` is what a superblock's shrinker belongs to, else `-`. objects is what it would shrink
 * for the root cgroup on that node. FLAGS are letters: n by node, m by cgroup, - none.
 */
#include <linux/fs.h>
#include <linux/memcontrol.h>
#include <linux/mmzone.h>
#include <linux/seq_file.h>
#include <linux/shrinker.h>
#include <linux/version.h>

#include "mmtwin.h"

static const char *filesystem(struct shrinker *shrinker)
{
	struct super_block *of;

	if ((void *)shrinker->scan_objects != mmtwin_symbol("super_cache_scan"))
		return "-";
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
	of = shrinker->private_data;
#else
	of = container_of(shrinker, struct super_block, s_shrink);
#endif
	return of->s_type->name;
}

/* What was not shrunk when it should have been, and will be. Those that count by cgroup have it there. */
static long deferred(struct shrinker *shrinker, int node, struct mem_cgroup *cgroup)
{
	struct shrinker_info *info;
	atomic_long_t *of = NULL;
	long count;

	rcu_read_lock();
	if (shrinker->nr_deferred) {
		of = &shrinker->nr_deferred[shrinker->flags & SHRINKER_NUMA_AWARE ? node : 0];
	} else if (cgroup) {
		info = rcu_dereference(cgroup->nodeinfo[node]->shrinker_info);
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
		if (info && shrinker->id < info->map_nr_max)
			of = &info->unit[shrinker->id / SHRINKER_UNIT_BITS]
				      ->nr_deferred[shrinker->id % SHRINKER_UNIT_BITS];
#else
		if (info)
			of = &info->nr_deferred[shrinker->id];
#endif
	}
	count = of ? atomic_long_read(of) : 0;
	rcu_read_unlock();
	return count;
}

static void show_node(struct seq_file *file, struct shrinker *shrinker, const char *of, int node)
{
	bool by_node = shrinker->flags & SHRINKER_NUMA_AWARE, by_cgroup = shrinker->flags & SHRINKER_MEMCG_AWARE;
	struct shrink_control control = { .gfp_mask = GFP_KERNEL, .nid = node, .memcg = mmtwin_root_cgroup() };
	unsigned long objects = shrinker->count_objects(shrinker, &control);

	seq_printf(file, "name=%ps of=%s node=%d objects=%ld deferred=%ld seeks=%d batch=%ld flags=%s%s%s\n",
		   shrinker->scan_objects, of, node, objects == SHRINK_EMPTY ? 0 : (long)objects,
		   deferred(shrinker, node, control.memcg), shrinker->seeks, shrinker->batch,
		   by_node ? "n" : "", by_cgroup ? "m" : "", by_node || by_cgroup ? "" : "-");
}

int mmtwin_show_shrinkers(struct seq_file *file, void *unused)
{
	/* Shrinkers come and go with what they shrink; the machine has to be quiet. */
	struct list_head *shrinkers = mmtwin_symbol("shrinker_list");
	struct shrinker *shrinker;
	const char *of;
	int node;

	if (!shrinkers)
		return -ENOENT;
	list_for_each_entry(shrinker, shrinkers, list) {
		of = filesystem(shrinker);
		for_each_online_node(node) {
			if (node == first_online_node || shrinker->flags & SHRINKER_NUMA_AWARE)
				show_node(file, shrinker, of, node);
		}
	}
	return 0;
}
