// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * mmtwin_delay: the device-mapper target "mmtwin-delay", which makes a disk of the lab as slow as a scenario says.
 *
 *   table:  0 SECTORS mmtwin-delay DEVICE NANOSECONDS
 *
 * A request goes to the device below at once and is reported as ended so many nanoseconds after the device was done with
 * it, in the interrupt of a high-resolution timer on the CPU that asked: as a disk does it whose queues take any number
 * of requests at a time. The kernel's own target "delay" counts ticks (to 6.6) or has a thread that polls (from 6.7 on),
 * which ends a request of 1 ms after 4 to 8.
 */
#include <linux/bio.h>
#include <linux/device-mapper.h>
#include <linux/hrtimer.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/version.h>

struct disk {
	struct dm_dev *below;
	u64 delay;	/* nanoseconds */
};

/* Beside each request; what the device mapper had set in it is put back before it sees the end. */
struct waiting {
	struct hrtimer timer;
	struct bio *bio;
	bio_end_io_t *end;
	void *private;
	u64 delay;
};

static enum hrtimer_restart waited(struct hrtimer *timer)
{
	struct waiting *waiting = container_of(timer, struct waiting, timer);
	struct bio *bio = waiting->bio;

	bio->bi_end_io = waiting->end;
	bio->bi_private = waiting->private;
	/* The request may be gone after this, and the timer with it: a timer that does not restart is not touched again. */
	bio_endio(bio);
	return HRTIMER_NORESTART;
}

static void transferred(struct bio *bio)
{
	struct waiting *waiting = bio->bi_private;

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(&waiting->timer, waited, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED);
#else
	hrtimer_init(&waiting->timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED);
	waiting->timer.function = waited;
#endif
	hrtimer_start(&waiting->timer, ns_to_ktime(waiting->delay), HRTIMER_MODE_REL_PINNED);
}

static int disk_map(struct dm_target *target, struct bio *bio)
{
	struct disk *disk = target->private;
	struct waiting *waiting = dm_per_bio_data(bio, sizeof(*waiting));

	waiting->bio = bio;
	waiting->end = bio->bi_end_io;
	waiting->private = bio->bi_private;
	waiting->delay = disk->delay;
	bio->bi_end_io = transferred;
	bio->bi_private = waiting;
	bio_set_dev(bio, disk->below->bdev);
	return DM_MAPIO_REMAPPED;
}

static int disk_make(struct dm_target *target, unsigned int count, char **words)
{
	struct disk *disk;
	int error;

	if (count != 2) {
		target->error = "expected DEVICE NANOSECONDS";
		return -EINVAL;
	}
	disk = kzalloc(sizeof(*disk), GFP_KERNEL);
	if (!disk)
		return -ENOMEM;
	error = kstrtou64(words[1], 10, &disk->delay);
	if (error || disk->delay > KTIME_MAX) {
		target->error = "not a number of nanoseconds";
		kfree(disk);
		return -EINVAL;
	}
	error = dm_get_device(target, words[0], dm_table_get_mode(target->table), &disk->below);
	if (error) {
		target->error = "no such device";
		kfree(disk);
		return error;
	}
	target->num_flush_bios = 1;
	target->per_io_data_size = sizeof(struct waiting);
	target->private = disk;
	return 0;
}

static void disk_remove(struct dm_target *target)
{
	struct disk *disk = target->private;

	dm_put_device(target, disk->below);
	kfree(disk);
}

static int disk_devices(struct dm_target *target, iterate_devices_callout_fn call, void *data)
{
	struct disk *disk = target->private;

	return call(target, disk->below, 0, target->len, data);
}

static struct target_type type = {
	.name = "mmtwin-delay",
	.version = { 1, 0, 0 },
	.module = THIS_MODULE,
	.ctr = disk_make,
	.dtr = disk_remove,
	.map = disk_map,
	.iterate_devices = disk_devices,
};

static int __init begin(void)
{
	return dm_register_target(&type);
}

static void __exit end(void)
{
	dm_unregister_target(&type);
}

module_init(begin);
module_exit(end);

MODULE_DESCRIPTION("A disk of mmtwin's lab that takes the time that a scenario says");
MODULE_LICENSE("Dual MIT/GPL");
