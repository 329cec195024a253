// SPDX-License-Identifier: Apache-2.0
/* Documented in cpu.h. */
#include "cpu.h"

#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* At most so many guests share a CPU; the scheduler places any further one. */
#define GUESTS_A_CPU 16

static bool claim(int fd, size_t cpu, unsigned int place)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int len = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "netwarp-guest-cpu-%zu-%u",
			   cpu, place);

	return bind(fd, (struct sockaddr *)&address,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len)) == 0;
}

/* The CPU with the fewest guests; of equal ones the one the scheduler has chosen for us, or the next. */
static int claimed_cpu(int fd, const cpu_set_t *allowed)
{
	int here = sched_getcpu();
	size_t first = here < 0 ? 0 : (size_t)here, cpu, i;
	unsigned int place;

	for (place = 0; place < GUESTS_A_CPU; place++)
		for (i = 0; i < CPU_SETSIZE; i++) {
			cpu = (first + i) % CPU_SETSIZE;
			if (CPU_ISSET(cpu, allowed) && claim(fd, cpu, place))
				return (int)cpu;
		}
	return -1;
}

void keep_on_one_cpu(int fd)
{
	int opened = socket(AF_UNIX, SOCK_DGRAM, 0), cpu = -1;
	cpu_set_t set;

	if (opened >= 0 && sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 1)
		cpu = claimed_cpu(opened, &set);
	if (cpu >= 0) {
		CPU_ZERO(&set);
		CPU_SET((size_t)cpu, &set);
		sched_setaffinity(0, sizeof(set), &set);
	}
	if (opened < 0)
		opened = open("/dev/null", O_RDONLY);
	if (opened != fd && (dup2(opened, fd) < 0 || close(opened)))
		die(EXIT_CANNOT, "dup2: %s", strerror(errno));
}
