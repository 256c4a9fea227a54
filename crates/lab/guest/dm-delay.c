/*
 * Creates a block device whose requests end some time after they were given to the device below it, by a target of the
 * kernel's device mapper: "mmtwin-delay NANOSECONDS" of our own module, or the kernel's "delay 0 MILLISECONDS".
 * tools/lab.sh builds it as a static program for the guest.
 * usage: dm-delay NAME DEVICE TARGET PARAMETER...
 */
#include <fcntl.h>
#include <linux/dm-ioctl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

struct request {
	struct dm_ioctl head;
	struct dm_target_spec target;
	char parameters[256];
};

static int call(int control, unsigned long number, struct request *request, const char *what)
{
	request->head.version[0] = DM_VERSION_MAJOR;
	request->head.data_size = sizeof(*request);
	request->head.data_start = sizeof(request->head);
	if (ioctl(control, number, request) < 0) {
		perror(what);
		return -1;
	}
	return 0;
}

static void begin(struct request *request, const char *name)
{
	memset(request, 0, sizeof(*request));
	snprintf(request->head.name, sizeof(request->head.name), "%s", name);
}

int main(int count, char **words)
{
	struct request request;
	unsigned long long bytes;

	if (count < 5) {
		fprintf(stderr, "usage: dm-delay NAME DEVICE TARGET PARAMETER...\n");
		return 2;
	}
	int device = open(words[2], O_RDONLY | O_CLOEXEC);
	if (device < 0 || ioctl(device, BLKGETSIZE64, &bytes) < 0) {
		perror(words[2]);
		return 1;
	}
	close(device);
	int control = open("/dev/mapper/control", O_RDWR | O_CLOEXEC);
	if (control < 0) {
		perror("/dev/mapper/control");
		return 1;
	}

	begin(&request, words[1]);
	if (call(control, DM_DEV_CREATE, &request, "creating the device"))
		return 1;

	begin(&request, words[1]);
	request.head.target_count = 1;
	request.target.length = bytes / 512;
	snprintf(request.target.target_type, sizeof(request.target.target_type), "%s", words[3]);
	size_t length = snprintf(request.parameters, sizeof(request.parameters), "%s", words[2]);
	for (int i = 4; i < count && length < sizeof(request.parameters); i++)
		length += snprintf(request.parameters + length, sizeof(request.parameters) - length, " %s", words[i]);
	if (length >= sizeof(request.parameters)) {
		fprintf(stderr, "%s: the parameters are too long\n", words[2]);
		return 1;
	}
	if (call(control, DM_TABLE_LOAD, &request, "loading the table"))
		return 1;

	/* Without the flag "suspend" this resumes the device, which makes the table its live one. */
	begin(&request, words[1]);
	return call(control, DM_DEV_SUSPEND, &request, "resuming the device") ? 1 : 0;
}
