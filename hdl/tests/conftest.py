"""Makes `verification` importable from the tests of this room, and what python/tests start from."""

import signal
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parents[1]))

# a job started in the background has SIGINT ignored, and what it starts would inherit that
signal.signal(signal.SIGINT, signal.default_int_handler)

# how long an example takes says more about the machine than about what is tested
settings.register_profile("latenz", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("latenz")
