"""Notes on samples of programs that asked for something and did not get it."""

NOT_LOCKED = "memory could not be locked: page faults may count as latency"
NOT_AWAKE = "/dev/cpu_dma_latency could not be held: leaving idle states counts as latency"
