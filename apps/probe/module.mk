# probe: datagrams at known times, for `netwarp calibrate`; static, so that it runs in any guest
PROGRAMS += probe
probe_SRC := probe/probe.c common/address.c common/clock.c common/ndjson.c common/number.c
probe_LDFLAGS := -static
