// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Files in /proc that show what the kernel's own do not: the state that a simulation begins with. Each is described
 * where it is shown. Reading one takes and gives back memory for its text, but moves no page of others.
 */
#include <linux/memcontrol.h>
#include <linux/proc_fs.h>
#include <linux/sched.h>
#include <linux/seq_file.h>

#include "mmtwin.h"

static const struct {
	const char *name;
	int (*show)(struct seq_file *file, void *unused);
} files[] = {
	{ "mmtwin_pagesets", mmtwin_show_pagesets },
	{ "mmtwin_lru", mmtwin_show_lru },
	{ "mmtwin_shrinkers", mmtwin_show_shrinkers },
	{ "mmtwin_nodes", mmtwin_show_nodes },
};

/* The cgroup of the first task, which nobody moves; NULL: the kernel has no memory cgroups. */
struct mem_cgroup *mmtwin_root_cgroup(void)
{
	return mem_cgroup_disabled() ? NULL : mem_cgroup_from_task(&init_task);
}

int mmtwin_files_begin(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(files); i++) {
		if (!proc_create_single(files[i].name, 0400, NULL, files[i].show)) {
			mmtwin_files_end();
			return -ENOMEM;
		}
	}
	return 0;
}

void mmtwin_files_end(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(files); i++)
		remove_proc_subtree(files[i].name, NULL);
}
