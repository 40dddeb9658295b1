"""Measuring machines where Latenz is not installed: one program is sent there and taken back."""

from latenz.remote.machine import Target, opened
from latenz.remote.url import TargetUrl

__all__ = ["Target", "TargetUrl", "opened"]
