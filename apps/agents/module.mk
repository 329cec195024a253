# agent: static, like every program of a cell; it speaks nfnetlink itself (docs/decisions/0012-agents.md)
AGENT_PURE := agents/segment.c agents/cache.c agents/agent.c agents/snoop.c agents/mtcp.c
PROGRAMS += agent
agent_SRC := agents/main.c agents/forward.c agents/queue.c agents/proxy.c $(AGENT_PURE) \
	common/options.c common/address.c common/clock.c common/ndjson.c
agent_LDFLAGS := -static
