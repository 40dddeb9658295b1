"""The examples of docs/python.md, run in order as one program."""

import re
from pathlib import Path


def test_the_guide_s_examples_run() -> None:
    text = Path("docs/python.md").read_text(encoding="utf-8")
    examples = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(examples) > 5
    exec(compile("\n".join(examples), "docs/python.md", "exec"), {})
