"""The examples of docs/systems.md work as they stand."""

import re
from pathlib import Path

import pytest

from latenz.errors import BadInput
from latenz.system import read_arrivals, read_system
from latenz.system.schema import SystemFile

TEXT = Path("docs/systems.md").read_text()
SNIPPETS = re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)


def snippets(kind):
    found = [content for name, content in SNIPPETS if name == kind]
    assert found
    return found


@pytest.mark.parametrize("content", snippets("toml"))
def test_system_files(tmp_path, content):
    (tmp_path / "trace.csv").write_text(snippets("csv")[0])
    (tmp_path / "system.toml").write_text(content)
    assert read_system(tmp_path / "system.toml").sources


def test_the_trace_has_a_source_that_the_system_has_not(tmp_path):
    (tmp_path / "trace.csv").write_text(snippets("csv")[0])
    (tmp_path / "system.toml").write_text(snippets("toml")[1])
    system = read_system(tmp_path / "system.toml")
    assert system.sources[0].arrival.times_ns.tolist() == [0, 1_000_000, 5_000_000]
    with pytest.raises(BadInput, match=r"trace.csv:3: 'lin' is not a source of the system"):
        read_arrivals(tmp_path / "trace.csv", system)


@pytest.mark.parametrize("content", snippets("python"))
def test_python(content):
    exec(compile(content, "docs/systems.md", "exec"), {})


def test_every_key_is_told():
    schema = SystemFile.model_json_schema()
    for each in [schema, *schema["$defs"].values()]:
        for key in each["properties"]:
            assert re.search(rf"`(\[\[?)?{key}\b", TEXT), key
