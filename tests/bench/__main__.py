from __future__ import annotations

from rich.console import Console
from rich.table import Table

from tests.bench import simulators

BENCHES = (simulators,)


def main() -> None:
    table = Table("figure", "value", "unit", "goal", box=None)
    for bench in BENCHES:
        for figure in bench.figures():
            goal = "" if figure.goal is None else f"{figure.goal:,.0f}"
            table.add_row(figure.name, f"{figure.value:,.0f}", figure.unit, goal)
    Console().print(table)


if __name__ == "__main__":
    main()
