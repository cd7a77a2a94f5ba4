"""Row programs: schedules for machines where DMA rows, loop iterations and padding cost (docs/silicon.md).

No padding is loaded, products with padding are left out, and loads run two steps ahead. Tiles of full width move their
rows in one burst. The knobs also choose the loops that are micro-ops, and the tensor that stays on chip.
"""
