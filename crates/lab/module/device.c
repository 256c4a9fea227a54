// SPDX-License-Identifier: MIT OR GPL-2.0
/*
 * mmtwin: does for a scenario what no program can do, through the device /dev/mmtwin.
 *
 *   page-loop, page-fill   allocates and frees pages in the context of the calling thread, so that its CPU, its memory
 *                          policy and the NUMA counters are those of the scenario's thread
 *   vmalloc-test           allocates and frees vmalloc areas in kernel threads, as the kernel's own test_vmalloc does
 *                          in its tests fix_size_alloc_test, full_fit_alloc_test and long_busy_list_alloc_test
 *
 * and shows in /proc/mmtwin_* what the kernel's own files do not.
 *
 * Built and run with Debian's kernels 6.1 and 6.12 for x86-64. Not for a machine that does other work: with page-fill
 * it takes all the memory there is, and it looks into lists that it has no lock of.
 */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "mmtwin.h"

static int device_open(struct inode *inode, struct file *opened)
{
	struct mmtwin_file *file = kzalloc(sizeof(*file), GFP_KERNEL);

	if (!file)
		return -ENOMEM;
	mutex_init(&file->lock);
	INIT_LIST_HEAD(&file->pages);
	opened->private_data = file;
	return 0;
}

static int device_release(struct inode *inode, struct file *opened)
{
	struct mmtwin_file *file = opened->private_data;

	mmtwin_free(file);
	kfree(file);
	return 0;
}

static long device_ioctl(struct file *opened, unsigned int command, unsigned long argument)
{
	struct mmtwin_file *file = opened->private_data;
	void __user *user = (void __user *)argument;
	union {
		struct mmtwin_pages pages;
		struct mmtwin_vmalloc vmalloc;
	} work;
	size_t size = _IOC_SIZE(command);
	int error;

	if (command != MMTWIN_PAGES && command != MMTWIN_VMALLOC)
		return -ENOTTY;
	if (copy_from_user(&work, user, size))
		return -EFAULT;
	if (command == MMTWIN_PAGES) {
		if (mutex_lock_killable(&file->lock))
			return -EINTR;
		error = mmtwin_pages(file, &work.pages);
		mutex_unlock(&file->lock);
	} else {
		error = mmtwin_vmalloc(&work.vmalloc);
	}
	if (!error && copy_to_user(user, &work, size))
		return -EFAULT;
	return error;
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.open = device_open,
	.release = device_release,
	.unlocked_ioctl = device_ioctl,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "mmtwin",
	.mode = 0600,
	.fops = &operations,
};

static int __init begin(void)
{
	int error = mmtwin_files_begin();

	mmtwin_stop_hpet();
	if (error)
		return error;
	error = misc_register(&device);
	if (error)
		mmtwin_files_end();
	return error;
}

static void __exit end(void)
{
	misc_deregister(&device);
	mmtwin_files_end();
}

module_init(begin);
module_exit(end);

MODULE_DESCRIPTION("Allocations of mmtwin's scenarios: pages, and vmalloc areas");
MODULE_LICENSE("Dual MIT/GPL");
