/* First program of the guest in tests/guest/sandbox/test_seccomp.py: one process looks for another's secret
 * in the guest's memory, reads it there and changes it. Neither shares memory with the other, nor sends it
 * the secret.
 *
 * It uses the page of code that User-Mode Linux's kernel has in every process of a guest: in seccomp mode the
 * host's kernel executes system calls from there (arch/um/kernel/skas/stub.c says so under "Known security
 * issues"). A page fault that did not happen is reported, the kernel answers by handing out its memory's
 * file, and that file is mapped as a whole. With ptrace such a system call is one of the guest's own, and
 * fails.
 *
 * Prints "@secret HEX", then "@no page of the kernel's", "@no memory", or "@read HEX"; at last what the
 * secret's owner finds in its memory: "@kept" or "@changed".
 */
#include <linux/futex.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define PAGE	      4096UL
#define TOP	      0x7ffffffff000UL
#define PAGES_BELOW   64
#define MOST_MEMORY   (64UL << 20) /* mem= of the test's guest */
#define IN_KERNEL     1
#define PAGE_FAULT    14
#define WRITE_BY_USER 6

/* struct stub_data of arch/um/include/shared/skas/stub-data.h, Linux 6.16 to 7.2 */
struct stub_call {
	unsigned long address, length, offset;
	int fd, protection, kind;
};

struct stub_data {
	long error;
	int calls;
	struct stub_call call[(PAGE - 128) / sizeof(struct stub_call)] __attribute__((aligned(16)));
	short restart;
	unsigned int futex;
	int signal;
	unsigned short siginfo_offset, mcontext_offset;
	struct {
		int sync;
		unsigned long fs, gs;
	} arch;
	unsigned char stack[PAGE] __attribute__((aligned(PAGE)));
};

static const unsigned char call_and_return[] = {0x0f, 0x05, 0xc3}; /* syscall; ret */
static const char mark[] = "secret of another process: ";
static sigjmp_buf refused;

static void on_fault(int number)
{
	(void)number;
	siglongjmp(refused, 1);
}

/* The "syscall; ret" of the kernel's page of code; NULL: there is none. */
static unsigned char *find_call(unsigned char **page)
{
	struct sigaction action = {.sa_handler = on_fault}, before;
	unsigned char *volatile found = NULL;
	volatile unsigned long at;

	sigaction(SIGSEGV, &action, &before);
	for (at = TOP - PAGE; !found && at > TOP - PAGES_BELOW * PAGE; at -= PAGE) {
		*page = (unsigned char *)at;
		if (!sigsetjmp(refused, 1))
			found = memmem(*page, PAGE, call_and_return, sizeof(call_and_return));
	}
	sigaction(SIGSEGV, &before, NULL);
	return found;
}

/* A system call from that place. */
static long call_there(unsigned char *place, long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("subq $128, %%rsp\n\tcall *%[place]\n\taddq $128, %%rsp"
			 : "=a"(result), "+r"(r10), "+r"(r8), "+r"(r9)
			 : "0"(number), "D"(a), "S"(b), "d"(c), [place] "b"(place)
			 : "rcx", "r11", "memory", "cc");
	return result;
}

/* The guest's memory, mapped as a whole; NULL: the kernel does not hand it out. */
static unsigned char *map_memory(unsigned char *place, struct stub_data *stub)
{
	unsigned char *fresh = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned char *target = mmap(NULL, MOST_MEMORY, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	union {
		char data[CMSG_SPACE(16 * sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	char byte;
	struct iovec one = {.iov_base = &byte, .iov_len = 1};
	struct msghdr message = {
	    .msg_iov = &one, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	mcontext_t *registers;
	int fd;

	/* with ptrace this is the guest's own futex(2), whose other side is nobody */
	if (stub->mcontext_offset > PAGE - sizeof(*registers) || stub->mcontext_offset == 0)
		return NULL;
	registers = (mcontext_t *)&stub->stack[stub->mcontext_offset];
	registers->gregs[REG_TRAPNO] = PAGE_FAULT;
	registers->gregs[REG_ERR] = WRITE_BY_USER;
	registers->gregs[REG_CR2] = (long)fresh;
	stub->signal = SIGSEGV;
	__atomic_store_n(&stub->futex, IN_KERNEL, __ATOMIC_SEQ_CST);
	call_there(place, SYS_futex, (long)&stub->futex, FUTEX_WAKE, 1, 0, 0, 0);
	while (__atomic_load_n(&stub->futex, __ATOMIC_SEQ_CST) == IN_KERNEL)
		call_there(place, SYS_futex, (long)&stub->futex, FUTEX_WAIT, IN_KERNEL, 0, 0, 0);
	if (call_there(place, SYS_recvmsg, 0, (long)&message, 0, 0, 0, 0) != 1 || !CMSG_FIRSTHDR(&message))
		return NULL;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	if (call_there(place, SYS_mmap, (long)target, (long)MOST_MEMORY, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_FIXED, fd, 0) != (long)target)
		return NULL;
	return target;
}

static void print_hex(const char *what, const unsigned char *bytes, size_t length)
{
	size_t i;

	printf("@%s ", what);
	for (i = 0; i < length; i++)
		printf("%02x", bytes[i]);
	printf("\n");
	fflush(stdout);
}

/* Keeps a secret until the other has looked for it; what this process told nobody stands behind its mark. */
static void keep_secret(int ready, int looked)
{
	unsigned char *own = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned char *secret = own + sizeof(mark) - 1, before[16];
	char byte = 0;

	memcpy(own, mark, sizeof(mark) - 1);
	if (getrandom(before, sizeof(before), 0) != sizeof(before))
		_exit(1);
	memcpy(secret, before, sizeof(before));
	if (write(ready, &byte, 1) != 1 || read(looked, &byte, 1) != 1)
		_exit(1);
	print_hex("secret", before, sizeof(before));
	printf(memcmp(secret, before, sizeof(before)) ? "@changed\n" : "@kept\n");
	fflush(stdout);
	_exit(0);
}

static void look_for_it(void)
{
	unsigned char *page = NULL, *place = find_call(&page), *memory, *at;

	if (!place) {
		printf("@no page of the kernel's\n");
		return;
	}
	memory = map_memory(place, (struct stub_data *)(page + PAGE));
	if (!memory) {
		printf("@no memory\n");
		return;
	}
	/* a page begins with the mark in its owner's memory alone: this program's own text has it elsewhere
	 */
	for (at = memory; at < memory + MOST_MEMORY; at += PAGE) {
		if (memcmp(at, mark, sizeof(mark) - 1))
			continue;
		print_hex("read", at + sizeof(mark) - 1, 16);
		memset(at + sizeof(mark) - 1, 0, 16);
	}
}

int main(void)
{
	int ready[2], looked[2], status;
	char byte = 0;

	if (pipe(ready) || pipe(looked))
		return 1;
	if (fork() == 0)
		keep_secret(ready[1], looked[0]);
	if (read(ready[0], &byte, 1) != 1)
		return 1;
	look_for_it();
	fflush(stdout);
	if (write(looked[1], &byte, 1) != 1)
		return 1;
	wait(&status);
	reboot(RB_POWER_OFF);
	return 1;
}
