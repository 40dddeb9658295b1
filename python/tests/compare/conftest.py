"""One thread for small matrices, as the command has it; set before numpy is loaded."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
