// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * What kswapd, reclaim and compaction remember of nodes and zones, as /proc/mmtwin_nodes: a line per node and one per
 * populated zone behind it.
 *
 *   node=N kswapd_order=N kswapd_highest_zoneidx=N kswapd_failures=N kcompactd_max_order=N flags=0xN totalreserve=N
 *   node=N zone=NAME watermark_boost=N highatomic=N compact_considered=N compact_defer_shift=N compact_order_failed=N
 *       cached_free_pfn=N cached_migrate_pfn=N cached_migrate_pfn_sync=N flags=0xN
 *
 * flags are those of the kernel's structures, by bit.
 */
#include <linux/mmzone.h>
#include <linux/seq_file.h>

#include "mmtwin.h"

static void show_zone(struct seq_file *file, int node, struct zone *zone)
{
	seq_printf(file, "node=%d zone=%s watermark_boost=%lu highatomic=%lu ", node, zone->name, zone->watermark_boost,
		   zone->nr_reserved_highatomic);
	seq_printf(file, "compact_considered=%u compact_defer_shift=%u compact_order_failed=%d ",
		   zone->compact_considered, zone->compact_defer_shift, zone->compact_order_failed);
	seq_printf(file, "cached_free_pfn=%lu cached_migrate_pfn=%lu cached_migrate_pfn_sync=%lu flags=%#lx\n",
		   zone->compact_cached_free_pfn, zone->compact_cached_migrate_pfn[0],
		   zone->compact_cached_migrate_pfn[1], zone->flags);
}

int mmtwin_show_nodes(struct seq_file *file, void *unused)
{
	struct pglist_data *of;
	int node, index;

	for_each_online_node(node) {
		of = NODE_DATA(node);
		/* Newer kernels have an atomic_t of the failures, which is an int. */
		seq_printf(file, "node=%d kswapd_order=%d kswapd_highest_zoneidx=%d kswapd_failures=%d ", node,
			   of->kswapd_order, of->kswapd_highest_zoneidx, *(int *)&of->kswapd_failures);
		seq_printf(file, "kcompactd_max_order=%d flags=%#lx totalreserve=%lu\n", of->kcompactd_max_order,
			   of->flags, of->totalreserve_pages);
		for (index = 0; index < MAX_NR_ZONES; index++) {
			if (populated_zone(&of->node_zones[index]))
				show_zone(file, node, &of->node_zones[index]);
		}
	}
	return 0;
}
