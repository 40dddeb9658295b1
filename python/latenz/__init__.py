"""Latenz: how late can a real-time system be, and how to make it less late."""
