"""The elements that instructions touch, against every micro-op of every turn of their loops."""

from __future__ import annotations

import numpy as np

from hilt.schedule.operand_spans import OPERANDS, operand_spans
from hilt.vta.isa import INSTRUCTION, UOP, MemoryType, Opcode

_DEPTH = 12


def _stream(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return a few instructions behind LOADs of micro-ops, and the micro-ops in memory."""
    uops = np.zeros(30, dtype=UOP)
    for name in OPERANDS:
        uops[name] = random.integers(0, 40, len(uops))
    records = np.zeros(24, dtype=INSTRUCTION)
    for number, record in enumerate(records):
        if number % 6 == 0:
            record["opcode"], record["memory_type"] = Opcode.LOAD, MemoryType.UOP
            size = int(random.integers(1, _DEPTH + 1))
            record["x_size"], record["sram_base"] = size, random.integers(0, _DEPTH - size + 1)
            record["dram_base"] = random.integers(0, len(uops) - size + 1)
            continue
        record["opcode"] = random.choice([Opcode.GEMM, Opcode.ALU, Opcode.STORE])
        first, end = sorted(random.integers(0, _DEPTH + 1, 2).tolist())
        record["uop_bgn"], record["uop_end"] = first, end
        for loop in ("out", "in"):
            record[f"iter_{loop}"] = random.integers(1, 4)
            for name in OPERANDS:
                record[f"{name}_factor_{loop}"] = random.integers(0, 5)
    return records, uops


def test_a_span_is_from_the_least_to_the_largest_element_of_all_turns() -> None:
    random = np.random.default_rng(0)
    compared = 0
    for _ in range(40):
        records, uops = _stream(random)
        spans = operand_spans(records, uops, _DEPTH)
        held = np.zeros(_DEPTH, dtype=UOP)
        for number, record in enumerate(records):
            if record["opcode"] == Opcode.LOAD:
                place, size = int(record["sram_base"]), int(record["x_size"])
                held[place : place + size] = uops[int(record["dram_base"]) :][:size]
            if record["opcode"] not in (Opcode.GEMM, Opcode.ALU) or record["uop_bgn"] == record["uop_end"]:
                continue
            for name in OPERANDS:
                rows, columns = (int(record[f"{name}_factor_{loop}"]) for loop in ("out", "in"))
                touched = {
                    int(uop[name]) + outer * rows + inner * columns
                    for uop in held[int(record["uop_bgn"]) : int(record["uop_end"])]
                    for outer in range(int(record["iter_out"]))
                    for inner in range(int(record["iter_in"]))
                }
                assert spans[name][number] == (min(touched), max(touched) + 1)
                compared += 1
    assert compared > 500


def test_a_window_skips_the_rows_and_columns_that_its_weights_name() -> None:
    uops = np.zeros(1, dtype=UOP)
    uops["dst"], uops["wgt"] = 10, 3
    load = np.zeros(1, dtype=INSTRUCTION)
    load["opcode"], load["memory_type"], load["x_size"] = Opcode.LOAD, MemoryType.UOP, 1
    window = np.zeros(1, dtype=INSTRUCTION)
    window["opcode"], window["window"], window["uop_end"] = Opcode.GEMM, 1, 1
    window["iter_out"], window["iter_in"] = 4, 8
    window["dst_factor_out"], window["dst_factor_in"] = 8, 1
    window["wgt_factor_out"], window["wgt_factor_in"] = 2, 1
    spans = operand_spans(np.concatenate([load, window]), uops, _DEPTH)
    assert spans["dst"][1] == (10 + 2 * 8 + 1, 10 + 3 * 8 + 7 + 1)
    assert spans["wgt"][1] == (3, 4)
