# What starts a sandbox: guest-exec runs a guest kernel, netns-exec makes namespaces; both run on the host and die with
# their parent. seed.so is preloaded into the guest kernel: it answers getrandom() from the experiment's seed.
# core/built_programs.py lists the same names; its test reads lines of the form NAME += ...
PROGRAMS += guest-exec netns-exec
guest-exec_SRC := guest/guest-exec.c guest/cpu.c guest/launch.c
netns-exec_SRC := guest/netns-exec.c guest/interfaces.c guest/launch.c
# runs on other machines, too (docs/physical-hosts.md)
netns-exec_LDFLAGS := -static
LIBRARIES += seed.so
seed.so_SRC := guest/seed.c guest/capture_slots.c
# preloaded into the user's programs in virtual time: one that spins on the clock is put to sleep
LIBRARIES += program-clock.so
program-clock.so_SRC := guest/program_clock.c guest/program_random.c
