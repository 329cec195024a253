PROGRAMS += cell-init
CELL_INIT_PURE := cell-init/step_value.c cell-init/step.c cell-init/steps_rules.c cell-init/steps.c cell-init/netlink_message.c \
	cell-init/pcap_writer.c cell-init/trace_buffer.c common/ndjson.c
cell-init_SRC := cell-init/main.c cell-init/phases.c cell-init/cell.c cell-init/loop.c cell-init/record.c cell-init/progress.c cell-init/files.c \
	cell-init/sandbox.c cell-init/namespace.c cell-init/namespace_kill.c cell-init/kernel_module.c cell-init/netlink_socket.c cell-init/netlink.c cell-init/operstate.c \
	cell-init/sysctl.c cell-init/offload.c cell-init/proc_file.c cell-init/packet_program.c cell-init/process.c cell-init/terminal.c cell-init/wait_file.c \
	cell-init/child.c cell-init/capture.c cell-init/capture_process.c cell-init/packet_ring.c cell-init/memory.c cell-init/trace.c cell-init/counters.c common/clock.c common/kernel_log.c $(CELL_INIT_PURE)
cell-init_LDFLAGS := -static

# the pure parts behind a pipe, for tests/unit/apps/test_cell_init_*.py
SANITISED += cell-init-test-driver
cell-init-test-driver_SRC := cell-init/test_driver.c $(CELL_INIT_PURE)
