"""One panel a file. A panel has `show(view)` and sends nothing to the engine."""
