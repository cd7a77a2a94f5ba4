"""Hidden features of row programs that differ from those of other schedules, and further ones."""

from __future__ import annotations

from hilt.schedule.rows.plans import RowPlans
from hilt.schedule.tiling import IntArray


def row_features(plans: RowPlans) -> dict[str, IntArray]:
    """Return features (n,) by name; the last four only row programs have.

    Loads, GEMM and stores run beside each other as with two virtual threads. Products are those that are computed.
    """
    return {
        "nVT": plans.acc_slots,
        "acc_places": plans.acc_slots,
        "tile.inp_elements": plans.inp_box,
        "cycles.compute": plans.products,
        "gemm.uops": plans.kernel_uops,
        "dma_rows.load": plans.load_rows,
        "dma_rows.store": plans.store_rows,
        "gemm.turns": plans.turns,
        "keep": plans.keep,
    }
