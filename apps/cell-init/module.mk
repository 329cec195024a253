PROGRAMS += cell-init
cell-init_SRC := cell-init/main.c cell-init/play.c cell-init/module.c cell-init/loop.c cell-init/record.c cell-init/process.c cell-init/terminal.c \
	cell-init/namespace.c cell-init/netlink.c cell-init/netlink_message.c cell-init/sysctl.c cell-init/offload.c cell-init/watch.c \
	cell-init/capture.c cell-init/memory.c cell-init/tap.c cell-init/pcap.c cell-init/sandbox.c cell-init/steps.c \
	cell-init/steps_check.c cell-init/trace.c cell-init/trace_page.c cell-init/proc.c \
	common/ndjson.c common/clock.c
cell-init_LDFLAGS := -static

# the pure parts, for tests/unit/apps/test_cell_init_*.py
SANITISED += cell-init-parts
cell-init-parts_SRC := cell-init/parts.c cell-init/steps.c cell-init/steps_check.c cell-init/netlink_message.c \
	cell-init/pcap.c cell-init/trace_page.c common/ndjson.c
