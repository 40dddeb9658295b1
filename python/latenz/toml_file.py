"""TOML files checked against a model; mistakes are told with file, line, key and remedy."""

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from latenz.errors import BadInput, closest, closest_name, shown
from latenz.kinds import other_use_of
from latenz.magic import other_use, use_of_table

ModelT = TypeVar("ModelT", bound=BaseModel)
Place = tuple[str | int, ...]

_LARGEST = 1 << 20
_MOST_TOLD = 6  # mistakes after the first: all are on one line
_KEY = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
_KEYS = rf"{_KEY}(?:\s*\.\s*{_KEY})*"
_TABLE = re.compile(rf"\s*(\[\[?)\s*({_KEYS})\s*\]")
_ASSIGNMENT = re.compile(rf"\s*({_KEYS})\s*=")


class TomlFile(Generic[ModelT]):
    """A file with its checked content, which knows the line of everything in it.

    Args:
        path: The file.
        text: Its text.
        content: What it says.
    """

    def __init__(self, path: Path, text: str, content: ModelT) -> None:
        self.path = path
        self.content = content
        self._lines = _line_numbers(text)

    def where(self, place: Place) -> str:
        """Return file, line and key of a place, as an error message begins."""
        return _where(self.path, self._lines, place)


def read_toml(path: Path, model: type[ModelT], wanted: str) -> TomlFile[ModelT]:
    """Read a TOML file and check it against a model.

    Args:
        path: The file.
        model: What may stand in it.
        wanted: What it should be, such as "an experiment file", for the error messages.

    Raises:
        BadInput: The file cannot be read, is not TOML, or does not fit the model.
    """
    text = small_text(path, wanted)
    data = _parsed(path, text, wanted)
    try:
        return TomlFile(path, text, model.model_validate(data))
    except ValidationError as error:
        own = model.model_fields.keys() - {"name"}
        if not data.keys() & own and (use := use_of_table(data)):
            raise BadInput(f"is not {wanted}", str(path), use) from None
        raise _mistakes(path, _line_numbers(text), error, model) from None


def small_text(path: Path, wanted: str) -> str:
    """Return the text of a file that people write, of at most 1 MiB.

    Raises:
        BadInput: It cannot be read, is larger, or is not in UTF-8; `wanted` says what to give.
    """
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise BadInput("is not a regular file", str(path), f"give {wanted}")
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise BadInput("is larger than 1 MiB", str(path), f"give {wanted}")
        return content.decode("utf-8-sig")  # Windows' editor writes a mark in front
    except FileNotFoundError:
        raise BadInput("there is no such file", str(path), f"give {wanted}") from None
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", str(path)) from None
    except UnicodeDecodeError:
        use = other_use(content)
        raise BadInput("is not text in UTF-8", str(path), use or f"give {wanted}") from None


def _parsed(path: Path, text: str, wanted: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _syntax_mistake(path, str(error)) from None
    except ValueError:  # from Python's own limit
        before, *_ = re.split(r"[0-9_]{4000}", text, maxsplit=1)
        where = f"{path}:{before.count(chr(10)) + 1}"
        raise BadInput("a number has thousands of digits", where, f"give {wanted}") from None
    except RecursionError:
        raise BadInput("arrays or tables lie too deep", str(path), f"give {wanted}") from None


def _syntax_mistake(path: Path, message: str) -> BadInput:
    match = re.search(r"\(at line (\d+), column (\d+)\)", message)
    place = f"{path}:{match[1]}" if match else str(path)
    what = message[: match.start()].strip() if match else message
    remedy = other_use_of(path) or "see https://toml.io"
    return BadInput(f"is not TOML: {what[:1].lower()}{what[1:]}", place, remedy)


def _mistakes(
    path: Path, lines: dict[Place, int], error: ValidationError, model: type[BaseModel]
) -> BadInput:
    """Tell the mistakes in the file on one line: names that are not known first, then by place."""
    schema = _schema(model)
    mistakes = [
        (each["type"] != "extra_forbidden", _place(each, schema), each)
        for each in _without_doubles(error.errors(include_url=False), schema)
    ]
    mistakes.sort(key=lambda mistake: (mistake[0], _line(lines, mistake[1])))
    (_, first, mistake), *others = mistakes
    what, remedy = _explain(mistake, schema)
    more = [
        f"line {_line(lines, place)}: {_named(place)}{' '.join(_explain(each, schema)[:1])}"
        for _, place, each in others[:_MOST_TOLD]
    ]
    if len(others) > _MOST_TOLD:
        more.append(f"and {len(others) - _MOST_TOLD} more mistakes")
    return BadInput(what, _where(path, lines, first), "; ".join([remedy, *more]))


def _without_doubles(mistakes: list[Any], schema: dict[str, Any]) -> list[Any]:
    """Leave out that a key is missing where it stands there with a slip of the pen."""
    slips = {
        (each["loc"][:-1], closest_name(str(each["loc"][-1]), _known_keys(each["loc"], schema)))
        for each in mistakes
        if each["type"] == "extra_forbidden"
    }
    return [
        each
        for each in mistakes
        if each["type"] != "missing" or (each["loc"][:-1], each["loc"][-1]) not in slips
    ]


def _named(place: Place) -> str:
    key = _path_of(place)
    return f"{key}: " if key else ""


@cache
def _schema(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema()


def _place(mistake: Any, schema: dict[str, Any]) -> Place:
    """Leave out of a pydantic location what does not stand in the file, such as union tags."""
    place: Place = ()
    node = schema
    for part in mistake["loc"]:
        if part == "[key]":
            break
        node = _resolve(node, schema)
        if "discriminator" not in node:
            place = (*place, part)
        node = _step(node, part)
    if mistake["type"] == "union_tag_invalid":
        place = (*place, mistake["ctx"]["discriminator"].strip("'"))
    return place


def _explain(mistake: Any, schema: dict[str, Any]) -> tuple[str, str]:
    """Return what is wrong and what would be right."""
    kind, context = mistake["type"], mistake.get("ctx", {})
    key = mistake["loc"][-1] if mistake["loc"] else ""
    if kind == "extra_forbidden":
        return f"unknown key {shown(key)}", closest(str(key), _known_keys(mistake["loc"], schema))
    if kind == "missing":
        return f"the key {key!r} is missing", "add it"
    if kind == "union_tag_not_found":
        tag = context["discriminator"].strip("'")
        choices = " or ".join(f'"{name}"' for name in _tags(mistake["loc"], schema))
        return f"the key {tag!r} is missing", f"add {tag} = {choices}"
    if kind == "union_tag_invalid":
        tags = re.findall(r"'([^']+)'", context["expected_tags"])
        discriminator = context["discriminator"].strip("'")
        return f"{shown(context['tag'])} is not a known {discriminator}", closest(
            context["tag"], tags
        )
    if kind == "value_error":
        what, _, remedy = str(context["error"]).partition("; ")
        return what, remedy
    if kind in ("tuple_type", "list_type"):
        return f"{key!r} is not an array", f"write [[{key}]] for tables, {key} = [...] for values"
    if kind in ("model_type", "model_attributes_type", "dict_type"):
        keys = ", ".join(_known_keys((*mistake["loc"], ""), schema))
        remedy = f"write a table with keys of: {keys}" if keys else "write a table"
        return f"{shown(mistake['input'])} is not a table", remedy
    message = mistake["msg"]
    return f"{shown(mistake['input'])} is wrong", message[:1].lower() + message[1:]


def _known_keys(loc: Place, schema: dict[str, Any]) -> list[str]:
    """Return the keys that may stand where the last part of a location does."""
    return list(_node(loc[:-1], schema).get("properties", {}))


def _tags(loc: Place, schema: dict[str, Any]) -> list[str]:
    """Return what tells the kinds of a table apart."""
    return list(_node(loc, schema).get("discriminator", {}).get("mapping", {}))


def _node(loc: Place, schema: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a JSON Schema that describes a location."""
    node = schema
    for part in loc:
        node = _step(_resolve(node, schema), part)
    return _resolve(node, schema)


def _resolve(node: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    if "anyOf" in node:
        node = next((each for each in node["anyOf"] if each.get("type") != "null"), node)
    if "$ref" in node:
        resolved: dict[str, Any] = schema["$defs"][node["$ref"].rpartition("/")[2]]
        return resolved
    return node


def _step(node: dict[str, Any], part: str | int) -> dict[str, Any]:
    found: dict[str, Any]
    if isinstance(part, int):
        found = node.get("items", {})
    elif "discriminator" in node:
        found = {"$ref": node["discriminator"]["mapping"][part]}
    else:
        found = node.get("properties", {}).get(part) or node.get("additionalProperties") or {}
    return found


def _where(path: Path, lines: dict[Place, int], place: Place) -> str:
    key = _path_of(place)
    line = _line(lines, place)
    return f"{path}:{line}: {key}" if key else f"{path}:{line}"


def _path_of(place: Place) -> str:
    """Return a place as keys and, counted from 1, elements of arrays."""
    key = "".join(f"[{part + 1}]" if isinstance(part, int) else f".{_key(part)}" for part in place)
    return key.lstrip(".")


def _key(name: str) -> str:
    """Return a key as it stands in a file; one that needs quotes may hold anything."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]{1,60}", name) else shown(name)


def _line(lines: dict[Place, int], place: Place) -> int:
    """Return the line of a place, or of the innermost table around it."""
    while place not in lines:
        place = place[:-1]
    return lines[place]


def _line_numbers(text: str) -> dict[Place, int]:
    """Return the line on which each table and key begins.

    The text is known to be valid TOML, so only the beginnings of statements are looked at.
    """
    lines: dict[Place, int] = {(): 1}
    table: Place = ()
    counts: dict[Place, int] = {}
    for number, line in _statements(text):
        if match := _TABLE.match(line):
            *around, name = _keys(match[2])
            table = (*_present(around, counts), name)
            if match[1] == "[[":
                counts[table] = counts.get(table, -1) + 1
                lines.setdefault(table, number)
            table = _present((*around, name), counts)
            place = table
        elif match := _ASSIGNMENT.match(line):
            place = (*table, *_keys(match[1]))
        else:
            continue
        for length in range(1, len(place) + 1):
            lines.setdefault(place[:length], number)
    return lines


def _present(keys: Iterable[str], counts: dict[Place, int]) -> Place:
    """Return a table's place, with the number of each array element that is being written."""
    place: Place = ()
    for key in keys:
        place = (*place, key)
        if place in counts:
            place = (*place, counts[place])
    return place


def _keys(text: str) -> tuple[str, ...]:
    return tuple(key.strip("\"'") for key in re.findall(_KEY, text))


def _statements(text: str) -> list[tuple[int, str]]:
    """Return the lines that are not inside a multi-line string."""
    found, inside = [], False
    for number, line in enumerate(text.splitlines(), 1):
        if not inside:
            found.append((number, line))
        inside ^= (line.count('"""') + line.count("'''")) % 2 == 1
    return found
