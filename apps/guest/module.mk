PROGRAMS += guest-exec
guest-exec_SRC := guest/guest-exec.c
LIBRARIES += seed.so
seed.so_SRC := guest/seed.c
