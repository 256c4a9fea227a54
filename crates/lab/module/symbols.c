// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Addresses of what the kernel does not export, by name. Modules may not ask the kernel for them since 5.7, but a probe
 * may be put on the function that knows, and a probe says where it is.
 */
#include <linux/kprobes.h>

#include "mmtwin.h"

static unsigned long (*address_of)(const char *name);

/* NULL: there is no such symbol, or no way to ask. */
void *mmtwin_symbol(const char *name)
{
	struct kprobe probe = { .symbol_name = "kallsyms_lookup_name" };

	if (!address_of && register_kprobe(&probe) == 0) {
		/* Where functions begin with a mark for indirect branches, this is behind the mark. */
		address_of = (void *)probe.addr;
		unregister_kprobe(&probe);
	}
	return address_of ? (void *)address_of(name) : NULL;
}
