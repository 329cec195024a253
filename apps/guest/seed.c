// SPDX-License-Identifier: Apache-2.0
/*
 * seed.so: preloaded into a User-Mode-Linux kernel by guest-exec.
 *
 * 1. getrandom() and getentropy() are answered from xoshiro256** (Blackman, Vigna, 2018), its state filled by
 *    splitmix64 from NETWARP_SEED: the guest's whole random number generator follows from that seed.
 * 2. A request to set floating-point registers to what they are is left out. UML reads and sets them at each
 *    system call of a guest's program, and the host allocates, maps and frees kernel memory to set them
 *    (xstateregs_set()): a tenth of what a system call of a guest costs.
 * 3. The kernel's host processes die with it. UML asks for that itself in the processes that run guest
 * programs (os_set_pdeathsig), but not in those it forks at boot to try out ptrace; and a child whose parent
 * was killed before it could ask would stay, stopped, for ever. So every child asks, and looks whether it was
 * too late. Since 6.13 a process that runs guest programs is a program of its own, which asks by a system
 * call that no library sees, and does not look: its asking is done here before it becomes that program
 * (PR_SET_PDEATHSIG outlasts execve()).
 */
#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
/* of linux/elf.h, which elf.h's NT_X86_XSTATE stands for */
#define XSTATE 0x202
/* More than AVX-512 needs (2696). A processor with larger registers (AMX) sets them each time, as before. */
#define XSTATE_MAX 4096

static uint64_t state[4];
static bool seeded;
static pid_t kernel_pid; /* of the process that loaded us: UML never forks away from it */

static uint64_t splitmix64(uint64_t *x)
{
	uint64_t z = *x += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static uint64_t rotated(uint64_t x, int bits)
{
	return x << bits | x >> (64 - bits);
}

static uint64_t next(void)
{
	uint64_t result = rotated(state[1] * 5, 7) * 9, t = state[1] << 17;

	state[2] ^= state[0];
	state[3] ^= state[1];
	state[1] ^= state[2];
	state[0] ^= state[3];
	state[2] ^= t;
	state[3] = rotated(state[3], 45);
	return result;
}

static void __attribute__((constructor)) begin(void)
{
	const char *text = getenv("NETWARP_SEED");
	uint64_t seed;
	size_t i;

	kernel_pid = getpid();
	if (!text)
		return;
	seed = strtoull(text, NULL, 16);
	for (i = 0; i < 4; i++)
		state[i] = splitmix64(&seed);
	seeded = true;
}

static void fill(void *data, size_t len)
{
	unsigned char *to = data;
	uint64_t word;
	size_t part;

	for (; len; len -= part, to += part) {
		word = next();
		part = len < sizeof(word) ? len : sizeof(word);
		memcpy(to, &word, part);
	}
}

EXPORT ssize_t getrandom(void *buf, size_t len, unsigned int flags)
{
	if (!seeded)
		return syscall(SYS_getrandom, buf, len, flags);
	fill(buf, len);
	return (ssize_t)len;
}

EXPORT int getentropy(void *buf, size_t len)
{
	return getrandom(buf, len, 0) == (ssize_t)len ? 0 : -1;
}

static void die_with_kernel(void)
{
	syscall(SYS_prctl, PR_SET_PDEATHSIG, (unsigned long)SIGKILL, 0UL, 0UL, 0UL);
	/* too late: the kernel was killed before we asked (raw calls: after clone() libc's own state is not
	 * ours) */
	if (syscall(SYS_getppid) != kernel_pid && syscall(SYS_getpid) != kernel_pid)
		syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
}

/* os_set_pdeathsig() in each process that runs guest programs */
EXPORT int prctl(int option, ...)
{
	unsigned long values[4];
	va_list args;
	size_t i;

	if (option == PR_SET_PDEATHSIG) {
		die_with_kernel();
		return 0;
	}
	va_start(args, option);
	for (i = 0; i < 4; i++)
		values[i] = va_arg(args, unsigned long);
	va_end(args);
	return (int)syscall(SYS_prctl, option, values[0], values[1], values[2], values[3]);
}

/* start_ptraced_child() at boot */
EXPORT pid_t fork(void)
{
	pid_t (*real)(void);
	pid_t pid;

	*(void **)&real = dlsym(RTLD_NEXT, "fork");
	if (!real)
		return -1;
	pid = real();
	if (pid == 0)
		die_with_kernel();
	return pid;
}

/* The task of a child; it lies on its parent's stack, which is at rest until the child is another program.
 */
struct task {
	int (*run)(void *);
	void *data;
};

static int ask_and_run(void *data)
{
	const struct task *task = data;

	die_with_kernel();
	return task->run(task->data);
}

/* start_userspace(), and init_seccomp() at boot: children that share the kernel's memory until they execute
 */
EXPORT int clone(int (*run)(void *), void *stack, int flags, void *data, ...)
{
	int (*real)(int (*)(void *), void *, int, void *, ...);
	struct task task = {run, data};
	void *more[3];
	va_list args;
	size_t i;

	*(void **)&real = dlsym(RTLD_NEXT, "clone");
	if (!real)
		return -1;
	va_start(args, data);
	for (i = 0; i < 3; i++)
		more[i] = va_arg(args, void *);
	va_end(args);
	if (!(flags & CLONE_VFORK))
		return real(run, stack, flags, data, more[0], more[1], more[2]);
	return real(ask_and_run, stack, flags, &task, more[0], more[1], more[2]);
}

/* The registers last read of a process that has not run since: what setting the same would not change. */
static struct {
	pid_t pid; /* 0: of none */
	size_t len;
	unsigned char bytes[XSTATE_MAX];
} known;

static bool as_known(pid_t pid, const struct iovec *registers)
{
	return known.pid == pid && registers->iov_len >= known.len &&
	       memcmp(registers->iov_base, known.bytes, known.len) == 0;
}

static void remember(pid_t pid, const struct iovec *registers)
{
	known.pid = registers->iov_len <= sizeof(known.bytes) ? pid : 0;
	known.len = registers->iov_len;
	if (known.pid)
		memcpy(known.bytes, registers->iov_base, known.len);
}

/*
 * Nothing but a request to run it changes a stopped process' registers behind our back, and a process that
 * gets the number of one that ended is set up by other requests first: every request but those that read, or
 * set other registers, makes us forget.
 */
EXPORT long ptrace(enum __ptrace_request request, ...)
{
	void *address, *data;
	bool floating;
	va_list args;
	long value, result;
	pid_t pid;

	va_start(args, request);
	pid = va_arg(args, pid_t);
	address = va_arg(args, void *);
	data = va_arg(args, void *);
	va_end(args);
	/* libc's own: the value that a PEEK reads is the result */
	if (request == PTRACE_PEEKTEXT || request == PTRACE_PEEKDATA || request == PTRACE_PEEKUSER) {
		result = syscall(SYS_ptrace, request, pid, address, &value);
		return result < 0 ? result : value;
	}
	floating = (uintptr_t)address == XSTATE;
	if (request == PTRACE_SETREGSET && floating && as_known(pid, data))
		return 0;
	if (request != PTRACE_GETREGS && request != PTRACE_SETREGS)
		known.pid = 0;
	result = syscall(SYS_ptrace, request, pid, address, data);
	if (request == PTRACE_GETREGSET && floating && result == 0)
		remember(pid, data);
	return result;
}
