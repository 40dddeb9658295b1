"""Formal proofs of what the Latencies IP must do."""
