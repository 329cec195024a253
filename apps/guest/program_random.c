// SPDX-License-Identifier: Apache-2.0
/*
 * program-clock.so, second part: std::random_device of C++ asks the guest's kernel.
 *
 * That kernel has its randomness from the experiment's seed (seed.c). But libstdc++'s std::random_device
 * reads the processor's generator (RDSEED, RDRAND), which no seed reaches. These functions take its place;
 * their symbols are those of the C++ ABI.
 */
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define INIT   "_ZNSt13random_device7_M_initE"

/* _M_init(const std::string &), for both forms of std::string that libstdc++ knows. `token` names a source,
 * which is here the same for all. */
EXPORT void
random_device_init(void *self,
		   const void *token) __asm__(INIT "RKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE");
EXPORT void random_device_init_old(void *self, const void *token) __asm__(INIT "RKSs");
EXPORT void random_device_fini(void *self) __asm__("_ZNSt13random_device7_M_finiEv");
EXPORT unsigned int random_device_value(void *self) __asm__("_ZNSt13random_device9_M_getvalEv");
EXPORT double random_device_entropy(const void *self) __asm__("_ZNKSt13random_device13_M_getentropyEv");

void random_device_init(void *self, const void *token)
{
	(void)self;
	(void)token;
}

void random_device_init_old(void *self, const void *token)
{
	(void)self;
	(void)token;
}

void random_device_fini(void *self)
{
	(void)self;
}

unsigned int random_device_value(void *self)
{
	unsigned int value;

	(void)self;
	if (syscall(SYS_getrandom, &value, sizeof(value), 0) != (long)sizeof(value))
		abort(); /* its callers know no error but an exception */
	return value;
}

/* libstdc++'s own would read what its _M_init has not set. */
double random_device_entropy(const void *self)
{
	(void)self;
	return 32; /* bits in a value: those of the kernel's generator */
}
