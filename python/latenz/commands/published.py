"""`latenz published`: the figures of the publications that Latenz builds on."""

from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.table import Table


def command(
    name: Annotated[
        str | None, typer.Argument(help="A table, such as alonso2024.table4; none: list them.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Show published latencies, as printed and in nanoseconds, with what is wrong with them.

    Example: latenz published alonso2021.table3
    """
    from latenz import published

    if name is None:
        document = _list()
    elif name in published.fact_names():
        document = _facts(name)
    else:
        document = _values(name)
    if json:
        import json as json_module

        typer.echo(json_module.dumps(document, ensure_ascii=False, indent=1))
        return
    from latenz.console import Console

    console = Console()
    shown = {"tables": _listed, "values": _valued, "facts": _stated}
    for key, table in shown.items():
        if key in document:
            console.print(table(document))
    remarks = [
        f"{row['set']}, {row['column']}: {row['remark']}"
        for row in document.get("values", ())
        if row["remark"]
    ]
    for note in [*remarks, *document.get("notes", ())]:
        console.print(f"- {note}", highlight=False)


def _list() -> dict[str, Any]:
    from latenz.published import publications

    tables, facts = [], []
    for file in publications():
        key, citation = file.publication.key, file.publication.citation
        tables += [
            {
                "name": f"{key}.{table.key}",
                "publication": citation,
                "place": table.place,
                "title": table.title,
                "values": table.count,
            }
            for table in file.table
        ]
        facts.append(
            {
                "name": f"{key}.facts",
                "publication": citation,
                "place": "throughout",
                "title": "Figures that are no statistics of a latency",
                "values": len(file.fact),
            }
        )
    return {"tables": tables + facts}


def _values(name: str) -> dict[str, Any]:
    from latenz import published

    publication, table = published.find(name)
    notes = list(table.notes)
    if table.unit_correction:
        notes.append(f"Unit: {table.unit_correction}")
    return {
        "name": name,
        "publication": publication.citation,
        "place": table.place,
        "title": table.title,
        "time_base": "published",
        "from_event": table.from_event,
        "to_event": table.to_event,
        "values": [
            {
                "set": value.set_name,
                "row": value.row,
                "column": value.column,
                "statistic": value.statistic,
                "printed": value.printed,
                "unit_printed": value.unit,
                _amount(value.statistic): _number(value.exact),
                f"corrected_{_amount(value.statistic)}": _number(value.corrected),
                "remark": value.remark,
            }
            for value in published.values(name)
        ],
        "notes": notes,
    }


def _facts(name: str) -> dict[str, Any]:
    from latenz import published

    return {
        "name": name,
        "facts": [
            {
                "name": fact.name,
                "place": fact.place,
                "printed": fact.printed,
                "unit_printed": fact.unit,
                "value": _number(fact.number),
                "value_ns": _number(fact.nanoseconds),
                "correction": fact.correction,
                "note": fact.note,
            }
            for fact in published.facts(name)
        ],
    }


def _amount(statistic: str) -> str:
    return "count" if statistic == "n" else "value_ns"


def _number(value: Decimal | None) -> int | float | None:
    if value is None:
        return None
    return int(value) if value == int(value) else float(value)


def _listed(document: dict[str, Any]) -> "Table":
    rows = ((row["name"], row["place"], row["title"], row["values"]) for row in document["tables"])
    return _table("Published values", ("Name", "Place", "Title", "Values"), rows, right=(3,))


def _valued(document: dict[str, Any]) -> "Table":
    rows = (
        (
            row["set"],
            row["column"],
            row["printed"],
            row.get("value_ns"),
            row.get("corrected_value_ns"),
        )
        for row in document["values"]
    )
    title = f"{document['publication']}, {document['place']}: {document['title']}"
    headings = ("Measurement", "Column", "Printed", "ns", "Corrected ns")
    return _table(title, headings, rows, right=(2, 3, 4))


def _stated(document: dict[str, Any]) -> "Table":
    rows = (
        (
            row["name"],
            row["place"],
            row["printed"],
            row["unit_printed"],
            row["correction"] or row["note"],
        )
        for row in document["facts"]
    )
    headings = ("What", "Place", "Printed", "Unit", "Remark")
    return _table(document["name"], headings, rows, right=(2,))


def _table(title: str, headings: tuple[str, ...], rows: Any, right: tuple[int, ...]) -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left")
    for index, heading in enumerate(headings):
        table.add_column(heading, justify="right" if index in right else "left")
    for row in rows:
        table.add_row(*(Text("" if cell is None else str(cell)) for cell in row))
    return table
