# drill: plays the compiled steps of a packetdrill script in a guest; static, so that it runs in any
PROGRAMS += drill
drill_SRC := drill/main.c drill/play.c drill/script.c drill/wire.c drill/call.c drill/guest.c drill/report.c common/clock.c common/kernel_log.c common/ndjson.c
drill_LDFLAGS := -static -pthread
drill_CFLAGS := -pthread

# the reader of steps.txt behind a pipe, for tests/unit/apps/test_drill_script.py
SANITISED += drill-test-driver
drill-test-driver_SRC := drill/test_driver.c drill/script.c
