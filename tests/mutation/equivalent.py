"""Mutants that change nothing that a caller can see, each with its reason: they are left out of the shares."""

from __future__ import annotations

EQUIVALENT: dict[str, dict[tuple[str, str], str]] = {
    "board/hilt_board/daemon.py": {
        (
            'text = "not on the board: {}: put them first".format(", ".join(names[:32]))',
            "32 -> 33",
        ): "a trial has at most 16 inputs, so there are no more than 18 names",
        (
            "warm.add_done_callback(lambda task: task.cancelled() or task.exception())",
            "Or -> And",
        ): "the result is not read; asking keeps asyncio from logging an exception that the next client gets",
    },
    "board/hilt_runtime/native/plan_shape.py": {
        ("whole = np.broadcast_to(np.int8(0), shape)", "0 -> 1"): "its shape alone is read",
    },
    "board/hilt_runtime/register_protocol.py": {
        ("moved, moved_at, polls = -1, started, 0", "1 -> 2"): "a count is neither -1 nor -2",
        ("moved, moved_at, polls = -1, started, 0", "0 -> 1"): "the first count sets it to 0",
    },
    "board/hilt_board/journal.py": {
        (
            "self.acknowledge(self.next - 1, run_of(others[0].key))",
            "Sub -> Add",
        ): "acknowledge takes no more than the last number",
        ('return key.split("/", 1)[0]', "1 -> 2"): "the first part is the same",
        (
            "directory = os.open(str(path), os.O_RDONLY | os.O_DIRECTORY)",
            "BitOr -> BitAnd",
        ): "O_RDONLY is 0, and the path is a directory's",
    },
    "board/hilt_runtime/operators_integer.py": {
        (
            'products = (data.astype(np.int32) << attributes["left"]) * np.where(data < 0, negative, positive)',
            "0 -> 1",
        ): "the product of a 0 is 0 with either factor",
    },
    "host/hilt/tune/annealing.py": {
        ("self._chances = np.cumsum(weights / weights.sum())", "Div -> Mult"): "the next line makes the last chance 1",
        (
            "self._chances /= self._chances[-1]",
            "without self._chances /= self._chances[-1]",
        ): "it is 1 but for rounding",
        ("return knobs, before, (before + steps) % self._sizes[knobs]", "Add -> Sub"): "steps are drawn evenly",
        (
            "return np.asarray((space.indices(last) - space.indices(0 * last)) // np.maximum(space.sizes - 1, 1))",
            "Sub -> Add",
        ): "the index of the first configuration is 0",
        ("worth_a_look = np.flatnonzero(scores > threshold)", "Gt -> GtE"): "the loop below compares again",
    },
    "host/hilt/measure/connection.py": {
        (
            "self.acknowledge_through[run] = max(self.acknowledge_through.get(run, 0), measured.sequence)",
            "0 -> 1",
        ): "sequence numbers begin with 1",
    },
    "host/hilt/network/onnx_cut_joins.py": {
        ("start, end = ranges.get(1, (1, 0))", "1 -> 2"): "without that axis the start is not read",
        ("start, end = ranges.get(1, (1, 0))", "0 -> 1"): "nor is the end",
    },
    "host/hilt/network/joined_order.py": {
        (
            "return plain and node.inputs[0] == name and name not in node.inputs[1:] "
            "and node.inputs[1] in graph.constants",
            "1 -> 2",
        ): "a constant is no joined tensor",
    },
    "host/hilt/explore/exploration.py": {
        (
            "elif wanted < len(on_front):",
            "Lt -> LtE",
        ): "as many as there are, evenly along the front, are the whole front",
    },
    "host/hilt/simulator/image_run.py": {
        ("if image.address <= address < image.end:", "Lt -> LtE"): "at the end the address becomes what it is",
    },
}
"""The reason why a mutant is equivalent, by file and by (stripped source line, change)."""
