"""A player of packetdrill's scripts: read, compiled to steps, played in a guest by apps/drill, judged."""
