"""What no two processors could share does not compile, and the error names the rule."""

import re
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
COMPILE = ("g++", "-std=c++20", "-Wall", "-Wextra", "-Werror", f"-I{HERE.parents[1] / 'include'}")


@pytest.fixture(scope="module")
def compile_case(tmp_path_factory):
    """Compiles a source; the header that all of them include is compiled once."""
    header = tmp_path_factory.mktemp("precompiled") / "common.hpp"
    header.write_text('#include "latenz/icc.hpp"\n#include "latenz/icc/region_plan.hpp"\n')
    subprocess.run((*COMPILE, "-x", "c++-header", header), check=True)

    def compile_case(source: Path, *options: str) -> subprocess.CompletedProcess[str]:
        command = (*COMPILE, *options, "-fsyntax-only", "-include", header, source)
        return subprocess.run(command, capture_output=True, text=True)

    return compile_case


@pytest.mark.parametrize("source", sorted(HERE.glob("*.cpp")), ids=lambda source: source.stem)
def test_refused_by_its_rule_and_compiled_when_corrected(source, compile_case):
    [(first, rule)] = re.findall(r"^// refused( first)?: (.+)$", source.read_text(), re.M)
    refused = compile_case(source)
    errors = re.findall(r"error: (.+)", refused.stderr)
    assert refused.returncode != 0
    assert len(errors) == 1 or first, refused.stderr
    assert rule in errors[0]
    corrected = compile_case(source, "-DCORRECTED")
    assert corrected.returncode == 0, corrected.stderr
