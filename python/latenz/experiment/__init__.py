"""Experiments: files that say what to measure, and what carries them out."""
