"""Models beside the measurements: throughput laws, packet counts, SCTP failover."""
