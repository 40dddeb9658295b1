"""XML in which single attributes and elements are changed, and every other byte stays."""

import re
from dataclasses import dataclass, field
from xml.parsers import expat
from xml.sax.saxutils import escape

from latenz.errors import BadInput

_ATTRIBUTE = re.compile(rb"""\s+([^\s=/>]+)\s*=\s*("[^"]*"|'[^']*')""")
_DEEPEST = 100


@dataclass
class Node:
    """An element, and where it stands in the text, in bytes from the start.

    Attributes:
        start: Where its first tag begins.
        inside: Where its first tag ends.
        close: Where its last tag begins; None: one tag is all of it.
        end: Where it ends.
    """

    tag: str
    attributes: dict[str, str]
    start: int
    inside: int = 0
    close: int | None = None
    end: int = 0
    text: str = ""
    children: list["Node"] = field(default_factory=list)

    def all(self, tag: str) -> list["Node"]:
        """Return the children of a name."""
        return [each for each in self.children if each.tag == tag]


Step = str | tuple[str, dict[str, str]]
"""A child by its name, or by its name and some of its attributes."""


class Document:
    """A text of XML that can be changed.

    Args:
        text: The text.
        where: What it is, for error messages.

    Raises:
        BadInput: It is not XML, or has a document type or entities of its own.
    """

    def __init__(self, text: str, where: str) -> None:
        self._where = where
        self._become(text.encode())

    @property
    def text(self) -> str:
        """The text as it is now."""
        return self._bytes.decode()

    def find(self, *steps: Step) -> Node | None:
        """Return an element below the root, or None."""
        node: Node | None = self.root
        for step in steps:
            tag, wanted = (step, {}) if isinstance(step, str) else step
            found = [] if node is None else node.all(tag)
            node = next((each for each in found if wanted.items() <= each.attributes.items()), None)
        return node

    def put(self, *steps: Step) -> Node:
        """Return an element below the root, made last of its parent if it is not there."""
        for count in range(1, len(steps) + 1):
            if self.find(*steps[:count]) is None:
                parent = self.find(*steps[: count - 1])
                step = steps[count - 1]
                tag, attributes = (step, {}) if isinstance(step, str) else step
                if parent is not None:
                    self.append(parent, tag, attributes)
        found = self.find(*steps)
        if found is None:
            raise AssertionError("what was put in is there")
        return found

    def set(self, node: Node, name: str, value: str | None) -> None:
        """Give an element's attribute a value, or take it away."""
        tag = self._bytes[node.start : node.inside]
        at = 1 + len(node.tag.encode())
        new = b"" if value is None else _written({name: value}).encode()
        while found := _ATTRIBUTE.match(tag, at):
            if found[1].decode() == name:
                self._replace(node.start + found.start(), node.start + found.end(), new)
                return
            at = found.end()
        self._replace(node.start + at, node.start + at, new)

    def write(self, node: Node, text: str) -> None:
        """Give an element another text; it has no children."""
        if node.close is not None:
            self._replace(node.inside, node.close, escape(text).encode())

    def remove(self, node: Node) -> None:
        """Take an element away, with the white space before it."""
        before = self._bytes[: node.start]
        self._replace(len(before.rstrip()), node.end, b"")

    def append(self, parent: Node, tag: str, attributes: dict[str, str]) -> None:
        """Put a new element in as the last of another, on a line of its own."""
        element = f"<{tag}{_written(attributes)}/>"
        line = self._bytes.rfind(b"\n", 0, parent.start) + 1
        before = self._bytes[line : parent.start]
        indent = b"\n" + (before if not before.strip() else b"")
        new = indent + b"  " + element.encode()
        if parent.close is None:
            new = b">" + new + indent + b"</" + parent.tag.encode() + b">"
            begin = len(self._bytes[: parent.end - 2].rstrip())
            self._replace(begin, parent.end, new)
        else:
            end = len(self._bytes[: parent.close].rstrip())
            rest = indent if b"\n" not in self._bytes[end : parent.close] else b""
            self._replace(end, end if not rest else parent.close, new + rest)

    def _replace(self, begin: int, end: int, new: bytes) -> None:
        self._become(self._bytes[:begin] + new + self._bytes[end:])

    def _become(self, content: bytes) -> None:
        self._bytes = content
        self.root = _parsed(content, self._where)


def _written(attributes: dict[str, str]) -> str:
    """Return attributes as libvirt writes them."""
    quoted = {name: escape(value, {"'": "&apos;"}) for name, value in attributes.items()}
    return "".join(f" {name}='{value}'" for name, value in quoted.items())


def _parsed(content: bytes, where: str) -> Node:
    parser = expat.ParserCreate("utf-8")
    top = Node("", {}, 0)
    opened = [top]

    def start(tag: str, attributes: dict[str, str]) -> None:
        begin = parser.CurrentByteIndex
        if len(opened) > _DEEPEST:
            raise BadInput("elements lie too deep", where, "give the XML of a libvirt domain")
        node = Node(tag, attributes, begin, _end_of_tag(content, begin))
        opened[-1].children.append(node)
        opened.append(node)

    def end(_: str) -> None:
        node = opened.pop()
        alone = content[node.inside - 2 : node.inside] == b"/>"
        node.close = None if alone else parser.CurrentByteIndex
        node.end = node.inside if alone else _end_of_tag(content, parser.CurrentByteIndex)

    def text(data: str) -> None:
        opened[-1].text += data

    def refuse(*_: object) -> None:
        line = f"{where}:{parser.CurrentLineNumber}"
        what = "a document type is not read, as it may bring entities"
        raise BadInput(what, line, "give what virsh dumpxml prints")

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = text
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        line = f"{where}:{error.lineno}"
        raise BadInput(f"is not XML: {reason}", line, "give what virsh dumpxml prints") from None
    return top.children[0]


def _end_of_tag(content: bytes, begin: int) -> int:
    """Return where a tag ends: at a > that stands in no attribute's value."""
    found = re.compile(rb"""(?:"[^"]*"|'[^']*'|[^"'>])*>""").match(content, begin)
    return found.end() if found else len(content)
