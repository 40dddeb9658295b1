"""Makes the modules of this room importable from its tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
