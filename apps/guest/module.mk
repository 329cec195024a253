PROGRAMS += guest-exec netns-exec
guest-exec_SRC := guest/guest-exec.c guest/cpu.c guest/launch.c
netns-exec_SRC := guest/netns-exec.c guest/launch.c
LIBRARIES += seed.so
seed.so_SRC := guest/seed.c
