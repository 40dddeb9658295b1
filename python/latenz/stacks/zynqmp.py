"""What Linux on the A53 cores of a ZCU102 gets to see of it."""

import subprocess
from importlib import resources
from pathlib import Path

from latenz.errors import BadInput

_CPU = """\
		cpu@{number} {{
			device_type = "cpu";
			compatible = "arm,cortex-a53";
			reg = <{number}>;
			enable-method = "psci";
		}};
"""


def device_tree(folder: Path, cpus: int) -> Path:
    """Write the tree for a number of cores into a folder, and return the compiled one.

    Raises:
        BadInput: The compiler of device trees is not installed.
    """
    template = resources.files("latenz.boards").joinpath("trees", "zcu102-amp.dts").read_text()
    cores = "".join(_CPU.format(number=number) for number in range(cpus))
    path = folder / "zcu102.dtb"
    try:
        done = subprocess.run(
            ["dtc", "-q", "-I", "dts", "-O", "dtb", "-o", path, "-"],
            input=template.replace("@CPUS@\n", cores),
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        raise BadInput("is not installed", "dtc", "run setup/ensure boards") from None
    if done.returncode != 0:
        raise BadInput(f"dtc refuses it: {done.stderr.strip()}", str(path))
    return path
