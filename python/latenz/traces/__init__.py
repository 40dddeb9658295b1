"""Traces of the kernel: what they tell of the time that was lost, and why."""
