"""Models to compare measurements with: throughput laws, packet counts, SCTP failover."""
