// SPDX-License-Identifier: Apache-2.0
/* Documented in kernel_log.h. */
#include "kernel_log.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/klog.h>
#include <sys/mount.h>
#include <time.h>
#include <unistd.h>

#define CONSOLE_LEVEL  8 /* syslog(2): SYSLOG_ACTION_CONSOLE_LEVEL */
#define ABOVE_WARNINGS 5 /* levels below this one are printed: KERN_WARNING is 4 */
#define PRINTK_TIME    "/sys/module/printk/parameters/time"
#define DEBUGFS	       "/sys/kernel/debug"
#define KMEMLEAK       DEBUGFS "/kmemleak"
#define DEVKMSG	       "/proc/sys/kernel/printk_devkmsg"
#define OLD_ENOUGH_S   6 /* kmemleak.c: MSECS_MIN_AGE is 5 s */
#define SCANS	       2 /* an object is reported when two scans found it with the same content */

void kernel_log_open(void)
{
	int fd = open(PRINTK_TIME, O_WRONLY | O_CLOEXEC);

	klogctl(CONSOLE_LEVEL, NULL, ABOVE_WARNINGS);
	if (fd < 0)
		return;
	if (write(fd, "1", 1) != 1)
		perror(PRINTK_TIME);
	close(fd);
}

/* A line as one of the kernel's own, so that it is on the console whole, with its time. */
static void say(FILE *kmsg, const char *line)
{
	fprintf(kmsg, "<4>%s", line);
	fflush(kmsg); /* a record a write */
}

void kernel_log_leaks(void)
{
	struct timespec age = {.tv_sec = OLD_ENOUGH_S};
	FILE *found, *kmsg;
	char line[512];
	int fd, i;

	/* it may be there already, as a kernel with counters has it */
	mount("debugfs", DEBUGFS, "debugfs", MS_NOSUID | MS_NODEV, NULL);
	fd = open(KMEMLEAK, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;
	nanosleep(&age, NULL);
	for (i = 0; i < SCANS; i++)
		if (write(fd, "scan", 4) != 4)
			perror(KMEMLEAK);
	close(fd);
	fd = open(DEVKMSG, O_WRONLY | O_CLOEXEC); /* or the kernel keeps ten lines */
	if (fd >= 0) {
		if (write(fd, "on\n", 3) != 3)
			perror(DEVKMSG);
		close(fd);
	}
	found = fopen(KMEMLEAK, "re");
	kmsg = fopen("/dev/kmsg", "we");
	while (found && kmsg && fgets(line, sizeof(line), found))
		say(kmsg, line);
	if (found)
		fclose(found);
	if (kmsg)
		fclose(kmsg);
}
