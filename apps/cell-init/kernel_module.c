// SPDX-License-Identifier: Apache-2.0
/* Documented in kernel_module.h. */
#include "kernel_module.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

int kernel_module_load(struct cell *cell, const struct step_module *step)
{
	int fd, error = 0;

	/* never into the machine's own kernel */
	if (!cell->guest)
		return cell_fail(cell, "modules are loaded in a guest only");
	fd = open(step->module, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return cell_fail_errno(cell, errno, "cannot open %s", step->module);
	if (syscall(SYS_finit_module, fd, "", 0) && errno != EEXIST)
		error = errno;
	close(fd);
	return error ? cell_fail_errno(cell, error, "cannot load %s", step->module) : 0;
}
