# sctp-peer: the kernel's SCTP and usrsctp's against each other; needs the unpacked libusrsctp-dev (make programs)
ifneq ($(wildcard $(BUILD)/packages/usr/include/usrsctp.h),)
PACKAGED += sctp-peer
endif
sctp-peer_SRC := usrsctp/main.c usrsctp/kernel.c usrsctp/usrsctp.c common/clock.c common/number.c
sctp-peer_CFLAGS := -isystem $(BUILD)/packages/usr/include
sctp-peer_LIBS := $(wildcard $(BUILD)/packages/usr/lib/*/libusrsctp.a) -l:libsctp.a -pthread
