// SPDX-License-Identifier: Apache-2.0
/* Documented in filter.h. libpcap's functions: pcap(3PCAP). */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "filter.h"

enum { SNAPLEN = 262144, LINK_RAW = 101, DLT_RAW = 12 };
static const uint32_t NETMASK_UNKNOWN = UINT32_MAX;

/* libpcap's struct bpf_program */
struct program {
	unsigned int length;
	void *instructions;
};

struct compiled {
	uint16_t link_type;
	struct program program;
};

struct filter {
	void *library;
	char *text;
	struct compiled *compiled; /* one a link type */
	uint32_t count;
	void *(*open_dead)(int, int);
	void (*close)(void *);
	int (*compile)(void *, struct program *, const char *, int, uint32_t);
	void (*freecode)(struct program *);
	char *(*geterr)(void *);
	unsigned int (*run)(const void *, const uint8_t *, unsigned int, unsigned int);
};

static bool load(struct filter *f)
{
	static const char *const names[] = {"libpcap.so.0.8", "libpcap.so.1", "libpcap.so"};
	const struct {
		const char *name;
		void *to;
	} functions[] = {{"pcap_open_dead", &f->open_dead}, {"pcap_close", &f->close},
			 {"pcap_compile", &f->compile},	    {"pcap_freecode", &f->freecode},
			 {"pcap_geterr", &f->geterr},	    {"bpf_filter", &f->run}};

	for (size_t i = 0; !f->library && i < sizeof(names) / sizeof(names[0]); i++)
		f->library = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL);
	if (!f->library)
		return false;
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		void *address = dlsym(f->library, functions[i].name);

		if (!address)
			return false;
		memcpy(functions[i].to, &address, sizeof(address));
	}
	return true;
}

int filter_start(struct nwa *a, const char *text)
{
	struct filter *f = calloc(1, sizeof(*f));

	a->filter = f;
	if (!f || !(f->text = strdup(text)))
		return reader_fail(a, "", "out of memory");
	if (!load(f))
		return reader_fail(
		    a, "",
		    "a filter needs libpcap, which is not there: install the package libpcap0.8 "
		    "(libpcap0.8t64, libpcap)");
	return 0;
}

int filter_compile(struct nwa *a, uint16_t link_type)
{
	struct filter *f = a->filter;
	struct compiled *compiled = realloc(f->compiled, (f->count + 1) * sizeof(*compiled));
	struct compiled new = {.link_type = link_type};
	char name[128], why[128];
	void *handle;
	int status;

	if (!compiled)
		return reader_fail(a, "", "out of memory");
	f->compiled = compiled;
	handle = f->open_dead(link_type == LINK_RAW ? DLT_RAW : link_type, SNAPLEN);
	if (!handle)
		return reader_fail(a, "", "out of memory");
	status = f->compile(handle, &new.program, f->text, 1, NETMASK_UNKNOWN);
	if (status)
		snprintf(why, sizeof(why), "%s", f->geterr(handle));
	f->close(handle);
	if (!status) {
		f->compiled[f->count++] = new;
		return 0;
	}
	snprintf(name, sizeof(name), "the filter \"%s\"", f->text);
	return reader_fail(a, name, why);
}

bool filter_keeps(struct nwa *a, const struct record *r)
{
	struct filter *f = a->filter;
	uint32_t i = 0;

	while (i < f->count && f->compiled[i].link_type != r->link_type)
		i++;
	if (i == f->count && filter_compile(a, r->link_type))
		return true; /* the reader has failed: it stops at this record */
	return f->run(f->compiled[i].program.instructions, r->data, r->length, r->captured);
}

void filter_free(struct filter *f)
{
	if (!f)
		return;
	for (uint32_t i = 0; i < f->count; i++)
		f->freecode(&f->compiled[i].program);
	free(f->compiled);
	free(f->text);
	if (f->library)
		(void)dlclose(f->library);
	free(f);
}
