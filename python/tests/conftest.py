"""What every test starts from."""

import os
import signal

from hypothesis import HealthCheck, settings

# numpy's threads only get in each other's way in small tests on a busy machine
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# a job started in the background has SIGINT ignored, and what it starts would inherit that
signal.signal(signal.SIGINT, signal.default_int_handler)

# how long an example takes says more about the machine than about what is tested
settings.register_profile("latenz", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("latenz")
