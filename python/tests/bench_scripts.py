"""Scripts of bench/ as modules: tests run them with less to do."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

BENCH = Path(__file__).parents[2] / "bench"


def bench_script(name: str) -> ModuleType:
    """Import bench/NAME.py."""
    specification = importlib.util.spec_from_file_location(name, BENCH / f"{name}.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    specification.loader.exec_module(module)
    return module
