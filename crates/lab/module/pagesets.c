// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * The per-CPU page lists in full, as /proc/mmtwin_pagesets: what is on which list, and how long the next refill and
 * return will be. /proc/zoneinfo has their sum only, and a simulation that is to place page by page as the kernel does
 * must begin with the same lists.
 *
 * A line per populated zone and online CPU:
 *
 *   node=N zone=NAME cpu=N count=N high=N batch=N FACTORS free_diff=N lists=ORDER/TYPE:BLOCKS,...
 *
 * FACTORS are free_factor, or from 6.7 on alloc_factor and free_count. free_diff is what the CPU has not yet added to
 * the zone's count of free pages. Lists that are empty are left out. Lists are read without the zone's locks, so the
 * machine has to be quiet.
 */
#include <linux/list.h>
#include <linux/mmzone.h>
#include <linux/seq_file.h>
#include <linux/version.h>

#include "mmtwin.h"

static unsigned int blocks(struct list_head *list)
{
	struct list_head *at;
	unsigned int count = 0;

	list_for_each(at, list)
		count++;
	return count;
}

static void show_lists(struct seq_file *file, struct per_cpu_pages *pages)
{
	unsigned int list, order, type, count;
	const char *comma = "";

	for (list = 0; list < NR_PCP_LISTS; list++) {
		/* Behind the lists by order and type come those of huge pages. */
		order = list < NR_LOWORDER_PCP_LISTS ? list / MIGRATE_PCPTYPES : HUGETLB_PAGE_ORDER;
		type = list < NR_LOWORDER_PCP_LISTS ? list % MIGRATE_PCPTYPES : list - NR_LOWORDER_PCP_LISTS;
		count = blocks(&pages->lists[list]);
		if (count) {
			seq_printf(file, "%s%u/%u:%u", comma, order, type, count);
			comma = ",";
		}
	}
}

int mmtwin_show_pagesets(struct seq_file *file, void *unused)
{
	struct per_cpu_pages *pages;
	struct zone *zone;
	int node, index, cpu;

	for_each_online_node(node) {
		for (index = 0; index < MAX_NR_ZONES; index++) {
			zone = &NODE_DATA(node)->node_zones[index];
			if (!populated_zone(zone))
				continue;
			for_each_online_cpu(cpu) {
				pages = per_cpu_ptr(zone->per_cpu_pageset, cpu);
				seq_printf(file, "node=%d zone=%s cpu=%d count=%d high=%d batch=%d ", node, zone->name, cpu,
					   pages->count, pages->high, pages->batch);
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
				seq_printf(file, "alloc_factor=%d free_count=%d ", pages->alloc_factor, pages->free_count);
#else
				seq_printf(file, "free_factor=%d ", pages->free_factor);
#endif
				seq_printf(file, "free_diff=%d lists=",
					   per_cpu_ptr(zone->per_cpu_zonestats, cpu)->vm_stat_diff[NR_FREE_PAGES]);
				show_lists(file, pages);
				seq_putc(file, '\n');
			}
		}
	}
	return 0;
}
