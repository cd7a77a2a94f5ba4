"""The report on Verilator's coverage counts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.rtl.coverage import Point, add_up, by_module, table, uncovered


def line(source: Path, number: int, page: str, comment: str, instance: str, count: int) -> str:
    key = {"f": str(source), "l": number, "n": 5, "page": page, "o": comment, "h": instance}
    text = "".join(f"\x01{name}\x02{value}" for name, value in key.items())
    return f"C '{text}' {count}"


def test_instances_add_up_and_unreached_points_are_named(tmp_path: Path) -> None:
    source = tmp_path / "vta_some.sv"
    source.write_text("\n".join(["module vta_some;", "a;", "b;", "1: return 2;", "endmodule"]))
    counted = [
        "# SystemC::Coverage-3",
        line(source, 2, "v_line/vta_some__W8", "block", "top.u_first", 0),
        line(source, 2, "v_line/vta_some__W16", "block", "top.u_second", 3),
        line(source, 3, "v_branch/vta_some__W8", "else", "top.u_first", 0),
        line(source, 4, "v_line/vta_some__W8", "case", "top.u_first", 0),
        line(source, 1, "v_toggle/vta_some__W8", "full_q[3]:0->1", "top.u_first", 0),
        line(source, 1, "v_toggle/vta_some__W8", "full_q[3]:1->0", "top.u_first", 1),
    ]
    counts: Counter[Point] = Counter()
    for name in ("1.dat", "2.dat"):
        (tmp_path / name).write_text("\n".join(counted))
    add_up(tmp_path, counts)
    assert not list(tmp_path.glob("*.dat"))
    assert counts[Point("vta_some", "vta_some.sv", 2, "line", "block")] == 6
    modules = by_module(counts)
    assert list(table(modules))[1].split() == ["vta_some", "1/2", "50.0%", "1/2", "50.0%"]
    assert list(uncovered(modules, None)) == [
        "vta_some: never executed: vta_some.sv:3",
        "vta_some: never went one way: full_q (1)",
    ]
