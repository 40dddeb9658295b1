"""Running programs that are measured as they are: their periodic threads, cycle by cycle."""
