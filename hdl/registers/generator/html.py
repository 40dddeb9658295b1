# SPDX-License-Identifier: Apache-2.0
"""The HTML page of a map: one small file that needs no other, for readers without our tools."""

from html import escape

from .model import Field, Kind, Map, Register
from .text import origin

_ACCESS = {
    Kind.CONSTANT: "read only",
    Kind.DRIVEN: "read only",
    Kind.STORED: "read, write",
    Kind.STICKY: "read, write 1 to clear",
    Kind.COMMAND: "write 1 to command, reads 0",
}

_HEAD = """\
<!DOCTYPE html>
<!-- SPDX-License-Identifier: Apache-2.0 -->
<!-- {origin} -->
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; }}
table {{ border-collapse: collapse; width: 100%; }}
th, td {{ border-bottom: 1px solid #8886; padding: .3rem .6rem; text-align: left; }}
tr.register td {{ font-weight: 600; background: #8882; }}
code {{ font-size: .95em; }}
@media (prefers-color-scheme: dark) {{ body {{ background: #16181d; color: #e4e6eb; }} }}
</style>
</head>
<body>
<h1>{title}</h1>
<p>{description}</p>
<table>
<thead>
<tr><th>Byte offset</th><th>Register, field</th><th>Bits</th><th>Access</th>
<th>Reset</th><th>Meaning</th></tr>
</thead>
<tbody>
"""

_TAIL = """\
</tbody>
</table>
</body>
</html>
"""


def page(registers: Map) -> str:
    """The page <name>.html."""
    head = _HEAD.format(
        origin=origin(registers.source),
        title=escape(registers.title),
        description=escape(registers.description),
    )
    return head + "".join(_register(register) for register in registers.registers) + _TAIL


def _register(register: Register) -> str:
    presence = f"; if <code>{escape(register.present_when)}</code>" if register.present_when else ""
    rows = [
        f'<tr class="register" id="{register.name}"><td>0x{register.address:02X}</td>'
        f"<td><code>{register.name}</code></td>"
        f'<td colspan="4">{escape(register.title)}{presence}</td></tr>\n'
    ]
    return "".join([*rows, *[_field(field) for field in register.fields]])


def _field(field: Field) -> str:
    bits = str(field.low) if field.width == 1 else f"{field.high}:{field.low}"
    return (
        f"<tr><td></td><td><code>{field.name}</code></td><td>{bits}</td>"
        f"<td>{_ACCESS[field.kind]}</td><td>{_reset(field)}</td>"
        f"<td>{escape(field.description)}</td></tr>\n"
    )


def _reset(field: Field) -> str:
    if field.kind is Kind.DRIVEN:
        return ""
    if field.reset_generic:
        return f"<code>{escape(field.reset_generic)}</code>"
    value = f"0x{field.reset:X}" if field.width > 1 else str(field.reset)
    return f"<code>{value}</code>" + (" where implemented" if field.implemented_bits else "")
