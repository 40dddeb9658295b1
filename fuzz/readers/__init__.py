"""Readers of foreign data in Python: each takes a file, and checks what it reads of it."""
