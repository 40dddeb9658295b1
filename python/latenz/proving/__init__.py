"""Proof of effect: which settings of a tuning help this machine, measured one after the other."""
