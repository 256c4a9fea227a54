// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * Stops a timer of the emulated HPET that nobody uses.
 *
 * At boot the kernel gives timer 0 the period of a tick. Once every CPU has a timer of its own it turns the interrupt of
 * timer 0 off, but QEMU (10.0) goes on counting its periods. With -icount every timer that is due ends the round in which
 * the CPUs have their turns, and the round after it is not fair to them (crates/lab/src/turns.rs).
 */
#include <linux/io.h>

#include "mmtwin.h"

/* Where QEMU's machine pc has it, and its registers (IA-PC HPET specification 1.0a, 2.3). */
#define HPET_AT 0xfed00000
#define HPET_LENGTH 0x400
#define HPET_ID 0x000
#define HPET_ID_VENDOR 0xffff0000
#define HPET_ID_INTEL 0x80860000
#define HPET_T0_CONFIG 0x100
#define HPET_T0_INTERRUPT (1 << 2)
#define HPET_T0_PERIODIC (1 << 3)
#define HPET_T0_COMPARATOR 0x108

void mmtwin_stop_hpet(void)
{
	void __iomem *hpet = ioremap(HPET_AT, HPET_LENGTH);
	u32 config;

	if (!hpet)
		return;
	config = readl(hpet + HPET_T0_CONFIG);
	if ((readl(hpet + HPET_ID) & HPET_ID_VENDOR) == HPET_ID_INTEL && !(config & HPET_T0_INTERRUPT)) {
		writel(config & ~HPET_T0_PERIODIC, hpet + HPET_T0_CONFIG);
		/* Its counter of 32 bits gets there every 43 s. */
		writel(~0U, hpet + HPET_T0_COMPARATOR);
		writel(~0U, hpet + HPET_T0_COMPARATOR + 4);
	}
	iounmap(hpet);
}
