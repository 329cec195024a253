// SPDX-License-Identifier: Apache-2.0
/* Gives files to the fuzzer's entry, one after another: the sanitised build that the tests run. */
#include <stdio.h>
#include <stdlib.h>

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *name)
{
	FILE *file = fopen(name, "rb");
	uint8_t *data = NULL;
	long size;
	int status = 1;

	if (!file || fseek(file, 0, SEEK_END) || (size = ftell(file)) < 0)
		goto out;
	rewind(file);
	data = malloc((size_t)size + 1);
	if (!data || fread(data, 1, (size_t)size, file) != (size_t)size)
		goto out;
	status = LLVMFuzzerTestOneInput(data, (size_t)size);
out:
	if (status)
		perror(name);
	free(data);
	if (file)
		(void)fclose(file);
	return status;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (replay(argv[i]))
			return 1;
	printf("%d files\n", argc - 1);
	return 0;
}
