# agent: static, like every program of a cell; it speaks nfnetlink itself (docs/decisions/0012-agents.md)
AGENT_PURE := agents/segment.c agents/cache.c agents/agent.c agents/snoop.c agents/mtcp.c
PROGRAMS += agent
agent_SRC := agents/main.c agents/forward.c agents/queue.c agents/proxy.c agents/failure.c $(AGENT_PURE) \
	common/options.c common/address.c common/clock.c common/ndjson.c
agent_LDFLAGS := -static

# the parts that read packets, sanitised, behind analyzer/replay.c (tests), and `make -C apps fuzz-agents` (clang)
SANITISED += agents-replay
agents-replay_SRC := $(AGENT_PURE) agents/queue.c agents/fuzz.c analyzer/replay.c
$(BUILD)/san/agents-fuzz: $(AGENT_PURE) agents/queue.c agents/fuzz.c $(wildcard agents/*.h)
	@mkdir -p $(@D)
	@echo "  CLANG   agents-fuzz"
	@$(CLANG) $(BASE) -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -o $@ $(filter %.c,$^)
# Then: cd build/fuzz && ../san/agents-fuzz -max_len=4096 -timeout=10 corpus-agents ../../tests/data/agents
fuzz-agents: $(BUILD)/san/agents-fuzz
	@mkdir -p $(BUILD)/fuzz/corpus-agents
.PHONY: fuzz-agents
