"""A bound of Linux' wake-up latency, from windows seen on an unmodified kernel.

The theorem stands in docs/linux-bound.md.
"""
