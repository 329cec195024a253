# sender and receiver: static, so that they run in any guest and any namespace as they are
TRAFFIC_SRC := traffic/protocols.c traffic/flow.c traffic/config.c traffic/waiter.c traffic/pattern.c traffic/ranges.c \
	traffic/account.c traffic/tcp.c traffic/tcp_sends.c traffic/tcp_info.c traffic/window_clamp.c traffic/udp.c traffic/sctp.c \
	traffic/sctp_socket.c traffic/sctp_batch.c traffic/sctp_log.c traffic/sctp_options.c \
	traffic/schedule.c traffic/message_list.c traffic/heartbeat_list.c traffic/bulk.c \
	common/options.c common/address.c common/clock.c common/ndjson.c

PROGRAMS += sender receiver
sender_SRC := traffic/sender.c traffic/sender_due.c traffic/exchange.c traffic/many.c traffic/fibers.c $(TRAFFIC_SRC)
sender_LDFLAGS := -static
receiver_SRC := traffic/receiver.c traffic/sender_due.c traffic/exchange.c traffic/many.c traffic/fibers.c $(TRAFFIC_SRC)
receiver_LDFLAGS := -static
# lksctp; with WITHOUT_LIBSCTP=1 (make android) a program that does without (traffic/sctp_api.h)
ifdef WITHOUT_LIBSCTP
sender_CFLAGS := -DWITHOUT_LIBSCTP
receiver_CFLAGS := -DWITHOUT_LIBSCTP
else
sender_LIBS := -lsctp
receiver_LIBS := -lsctp
sender_SANLIBS := -lsctp
receiver_SANLIBS := -lsctp
endif

# the same with ASan and UBSan, for tests on the host (ASan cannot run in a guest: 39-bit address space)
SANITISED += sender receiver traffic-test-driver
traffic-test-driver_SRC := traffic/test_driver.c traffic/message_list.c traffic/pattern.c traffic/ranges.c traffic/account.c common/ndjson.c
