# The analyser's core: a shared library called from Python through ctypes (docs/decisions/0004-analyser-core.md),
# the same sources as a sanitised program that reads files (tests), and `make -C apps fuzz-analyzer` (clang).
ANALYZER_LIBS := -lzstd -lz -llzma -lbz2 -llz4
ANALYZER_CORE := analyzer/stream.c analyzer/unpack.c analyzer/filter.c analyzer/capture_file.c analyzer/pcap.c analyzer/pcapng.c analyzer/formats.c analyzer/reader.c analyzer/table.c analyzer/map.c analyzer/ranges.c analyzer/wireless.c analyzer/link.c analyzer/tunnel.c analyzer/decode.c analyzer/fragment.c analyzer/checksum.c \
	analyzer/flow.c analyzer/identity.c analyzer/datagrams.c analyzer/quic.c analyzer/copies.c analyzer/icmp.c analyzer/mappings.c analyzer/mptcp.c analyzer/sha256.c analyzer/opening.c analyzer/tcp.c analyzer/association.c analyzer/sctp.c analyzer/sorted.c analyzer/source.c analyzer/analyzer.c
LIBRARIES += libnetwarp_analyzer.so
libnetwarp_analyzer.so_SRC := $(ANALYZER_CORE)
libnetwarp_analyzer.so_LIBS := $(ANALYZER_LIBS)

SANITISED += analyzer-replay
analyzer-replay_SRC := $(ANALYZER_CORE) analyzer/fuzz.c analyzer/replay.c
analyzer-replay_SANLIBS := $(ANALYZER_LIBS)

CLANG ?= clang
.DEFAULT_GOAL := all
$(BUILD)/san/analyzer-fuzz: $(ANALYZER_CORE) analyzer/fuzz.c $(wildcard analyzer/*.h)
	@mkdir -p $(@D)
	@echo "  CLANG   analyzer-fuzz"
	@$(CLANG) $(BASE) -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -o $@ \
		$(filter %.c,$^) $(ANALYZER_LIBS)
# Then: cd build/fuzz && ASAN_OPTIONS=quarantine_size_mb=2:malloc_context_size=2:max_malloc_fill_size=0 ../san/analyzer-fuzz -max_len=8192 \
#       -rss_limit_mb=1024 -timeout=10 -entropic=0 -print_final_stats=1 corpus seeds
fuzz-analyzer: $(BUILD)/san/analyzer-fuzz
	@mkdir -p $(BUILD)/fuzz/corpus
	@../.venv/bin/python ../tests/fuzz/seeds.py $(BUILD)/fuzz/seeds
.PHONY: fuzz-analyzer
