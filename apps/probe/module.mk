# probe: datagrams at known times, for `netwarp calibrate`; static, so that it runs in any guest
PROGRAMS += probe
probe_SRC := probe/probe.c common/clock.c
probe_LDFLAGS := -static
