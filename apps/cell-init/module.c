// SPDX-License-Identifier: Apache-2.0
/* Modules of a guest kernel that has its parts as such, loaded in the order of the steps (dependencies
 * first). */
#include "cell.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

int module_load(struct cell *cell, const struct step *step)
{
	const char *file = step_text(step, "module");
	int fd, error = 0;

	/* the machine's own kernel is not ours to load things into */
	if (!cell->guest)
		return cell_fail(cell, "modules are loaded in a guest only");
	fd = open(file, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return cell_fail_errno(cell, errno, "cannot open %s", file);
	if (syscall(SYS_finit_module, fd, "", 0) && errno != EEXIST)
		error = errno;
	close(fd);
	return error ? cell_fail_errno(cell, error, "cannot load %s", file) : 0;
}
