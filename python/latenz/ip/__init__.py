"""Talks to the Latencies IP (`hdl/`): on a board, or simulated."""
