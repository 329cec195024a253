/* First program of the guest in tests/guest/sandbox/test_guest_registers.py: processes, threads and signal
 * handlers that each keep other values in floating-point registers across system calls. Prints "@kept N of
 * N".
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <unistd.h>

#define TIMES	 200
#define CHILDREN 3
#define THREADS	 3

static volatile sig_atomic_t handled;

/* Fills registers, lets others run, and compares. */
static int kept(unsigned char pattern)
{
	_Alignas(16) unsigned char in[16], out[48];

	memset(in, pattern, sizeof(in));
	__asm__ volatile("movaps (%1), %%xmm0\n\tmovaps (%1), %%xmm7\n\tmovaps (%1), %%xmm15\n\t"
			 "movl $24, %%eax\n\tsyscall\n\t" /* sched_yield */
			 "movaps %%xmm0, (%0)\n\tmovaps %%xmm7, 16(%0)\n\tmovaps %%xmm15, 32(%0)"
			 :
			 : "r"(out), "r"(in)
			 : "rax", "rcx", "r11", "xmm0", "xmm7", "xmm15", "memory");
	return !memcmp(out, in, 16) && !memcmp(out + 16, in, 16) && !memcmp(out + 32, in, 16);
}

static void *keep(void *pattern)
{
	long times, good = 0;

	for (times = 0; times < TIMES; times++)
		good += kept((unsigned char)((long)pattern + times % 2));
	return (void *)good;
}

static void on_signal(int number)
{
	(void)number;
	handled += kept(0xee);
}

int main(void)
{
	struct sigaction action = {.sa_handler = on_signal};
	pid_t children[CHILDREN];
	pthread_t threads[THREADS];
	long good = 0, i;
	void *result;
	int status, channel[2];

	sigaction(SIGUSR1, &action, NULL);
	if (pipe(channel))
		return 1;
	for (i = 0; i < CHILDREN; i++) {
		children[i] = fork();
		if (children[i] == 0) {
			good = (long)keep((void *)(0x10 * (i + 1)));
			good += handled > 0;
			_exit(write(channel[1], &good, sizeof(good)) != sizeof(good));
		}
	}
	for (i = 0; i < CHILDREN; i++)
		kill(children[i], SIGUSR1);
	for (i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, keep, (void *)(0x50 + 0x10 * i));
	for (i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &result);
		good += (long)result;
	}
	for (i = 0; i < CHILDREN; i++) {
		waitpid(children[i], &status, 0);
		if (read(channel[0], &result, sizeof(result)) == sizeof(result))
			good += (long)result;
	}
	printf("@kept %ld of %d\n", good, TIMES * (CHILDREN + THREADS) + CHILDREN);
	fflush(stdout);
	reboot(RB_POWER_OFF);
	return 1;
}
