// SPDX-License-Identifier: Apache-2.0
/*
 * drill-test-driver: reads the steps.txt files whose names come on standard input, one a line, as drill does,
 * and answers each with the number of events and connections, or "refused". Built with ASan and UBSan, for
 * tests/unit/apps/test_drill_script.py.
 */
#include "script.h"

#include <stdio.h>
#include <string.h>

int main(void)
{
	char path[4096];

	while (fgets(path, sizeof(path), stdin)) {
		struct script script = {0};

		path[strcspn(path, "\n")] = '\0';
		if (script_read(path, &script))
			puts("refused");
		else
			printf("%zu %zu\n", script.event_count, script.connection_count);
		fflush(stdout);
	}
	return 0;
}
