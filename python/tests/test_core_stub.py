"""The types of the bound core, `_core.pyi`, beside those that nanobind's own generator tells."""

import ast
import subprocess
import sys
from pathlib import Path

import latenz

WRITTEN = Path(latenz.__file__).with_name("_core.pyi")


def parameters(function: ast.FunctionDef) -> list[str]:
    """Names of parameters; the module has none for those that are known by their place."""
    given = function.args
    every = [*("/" for _ in given.posonlyargs), *(each.arg for each in given.args)]
    is_method = [each.arg for each in (*given.posonlyargs, *given.args)][:1] == ["self"]
    return every[1:] if is_method else every


def members(body: list[ast.stmt]) -> dict[str, object]:
    """Functions with their parameters, properties, and values of enumerations."""
    found: dict[str, object] = {}
    for each in body:
        if isinstance(each, ast.FunctionDef):
            is_property = any(ast.unparse(one) == "property" for one in each.decorator_list)
            found[each.name] = "property" if is_property else parameters(each)
        elif isinstance(each, ast.Assign) and isinstance(each.value, ast.Constant):
            found |= {name.id: each.value.value for name in each.targets}
    return found


def surface(text: str) -> dict[str, dict[str, object]]:
    """What a stub says that there is: of each class its members, inherited ones included."""
    found = {"": members(ast.parse(text).body)}
    for each in ast.parse(text).body:
        if isinstance(each, ast.ClassDef):
            bases = [found.get(ast.unparse(base), {}) for base in each.bases]
            found[each.name] = {k: v for base in bases for k, v in base.items()}
            found[each.name] |= members(each.body)
    return found


def test_the_types_are_those_of_the_module(tmp_path):
    generated = tmp_path / "core.pyi"
    command = [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "latenz._core", "-o"]
    subprocess.run([*command, generated], check=True)
    truth, told = surface(generated.read_text()), surface(WRITTEN.read_text())
    bases = {"ChannelEndpoint", "SlottedEndpoint"}  # for types alone, as the stub says
    assert set(truth) == set(told) - bases
    differences = {
        (name, member): (truth[name].get(member), told[name].get(member))
        for name in truth
        for member in {*truth[name], *told[name]}
        if truth[name].get(member) != told[name].get(member)
    }
    assert differences == {}
