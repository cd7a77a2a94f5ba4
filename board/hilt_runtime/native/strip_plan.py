"""The records of a chain: its steps planned for one strip, with room for the tensors that stay in the cache."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Sequence, Set, Tuple

import numpy as np

from hilt_runtime.native.plans import plan_operator
from hilt_runtime.native.split import LEAST, work_of
from hilt_runtime.native.steps import KERNELS, Builder, NotNativeError, StepRecord, copy, strides_of
from hilt_runtime.native.strips import VIEWS, StripChain, strip_shape

Step = Mapping[str, Any]


def chain_records(
    builder: Builder, steps: Sequence[Step], chain: StripChain, values: Mapping[str, Any]
) -> List[StepRecord]:
    """Return the records of a chain, in pieces for the builder's threads.

    Args:
        builder: That of the plan; the arrays of the chain become its own.
        steps: The chain's.
        chain: Its rows and tensors.
        values: The whole tensors by name.

    Raises:
        NotNativeError: The engine does not compute a step for a strip.
    """
    whole = _Strip(builder, chain, values, (0, chain.rows), chain.height).records(steps)
    strips = chain.rows // chain.height
    work = strips * sum(_work(builder, record) for record in whole)
    count = max(1, min(builder.threads, chain.rows, work // LEAST))
    if count == 1:
        return whole
    bounds = [chain.rows * piece // count for piece in range(count + 1)]
    height = min(chain.height, chain.rows // count)
    records: List[StepRecord] = []
    for piece in zip(bounds, bounds[1:]):
        records += _Strip(builder, chain, values, piece, height).records(steps)
    return [records[0]._replace(together=count), *records[1:]]


def _work(builder: Builder, record: StepRecord) -> int:
    arrays = [builder.arrays[place] for place in record.places]
    return work_of(KERNELS[record.kernel - 1], arrays, record.numbers)


class _Strip:
    """Plans the steps of a chain for the first strip of a piece of its rows."""

    def __init__(
        self, builder: Builder, chain: StripChain, values: Mapping[str, Any], piece: Tuple[int, int], height: int
    ) -> None:
        """`piece` is its first row, and the one behind its last."""
        self._builder = builder
        self._chain = chain
        self._values = values
        self._piece, self._height = piece, height
        self._whole: Dict[Tuple[int, int], Tuple[Any, int]] = {}
        """By address and size of a strip: the bytes of the piece's rows, and the bytes of one row."""
        self._arrays: Dict[str, Any] = {}
        self._rooms: List[Any] = []
        self._taken: Set[int] = set()

    def records(self, steps: Sequence[Step]) -> List[StepRecord]:
        """Return the records of the steps as a chain."""
        before = len(self._builder.records)
        try:
            with self._builder.whole(self._room):
                for place, step in enumerate(steps):
                    self._add(step)
                    self._release(steps[place + 1 :])
            own = self._builder.records[before:]
        finally:
            del self._builder.records[before:]
        if len(own) < 2:
            raise NotNativeError("a chain of one step")
        rows = self._piece[1] - self._piece[0]
        own = [self._moving(record) for record in own]
        return [own[0]._replace(chain=len(own), rows=rows, height=self._height), *own[1:]]

    def _add(self, step: Step) -> None:
        name = step["outputs"][0]
        if step["op"] in VIEWS and step["inputs"][0] not in self._arrays:
            return  # of a tensor that has memory of its own, as the view has
        inputs = [self._input(each) if each else None for each in step["inputs"]]
        if step["op"] in VIEWS:
            shape = strip_shape(self._values[name].shape, self._chain.rows, self._height)
            self._arrays[name] = self._arrays[step["inputs"][0]].reshape(shape)
        elif name in self._chain.inside:
            self._arrays[name] = plan_operator(self._builder, step["op"], inputs, step["attributes"])[0]
        else:
            self._arrays[name] = target = self._strip_of(name)
            with self._builder.writing_to(target):
                made = plan_operator(self._builder, step["op"], inputs, step["attributes"])[0]
            if made is not target:
                strides = strides_of(made.shape)
                copy(self._builder, made, target, made.shape, (0, strides), (0, strides))

    def _input(self, name: str) -> Any:
        if name in self._arrays:
            return self._arrays[name]
        return self._strip_of(name) if name in self._chain.rowed else self._values[name]

    def _strip_of(self, name: str) -> Any:
        """Return the first strip of a tensor that has memory of its own."""
        array = self._values[name]
        if not array.flags.c_contiguous:
            raise NotNativeError("a tensor is not contiguous")
        rows = array.reshape(self._chain.rows, -1)
        first, last = self._piece
        strip = rows[first : first + self._height]
        self._whole[strip.ctypes.data, strip.nbytes] = rows[first:last], rows.nbytes // self._chain.rows
        return strip.reshape(strip_shape(array.shape, self._chain.rows, self._height))

    def _moving(self, record: StepRecord) -> StepRecord:
        """Return a record that moves on along the rows of the piece."""
        places, pitch = [], []
        for place in record.places:
            array = self._builder.arrays[place]
            whole, step = self._whole.get((array.ctypes.data, array.nbytes), (None, 0))
            places.append(place if whole is None else self._builder.place(whole))
            pitch.append(step)
        return record._replace(places=places, pitch=pitch)

    # --- room for tensors between the steps ---

    def _room(self, shape: Sequence[int], dtype: Any) -> Any:
        """Return an array for a result: one that is no longer read, if there is one of its size."""
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        room = next((each for each in self._rooms if each.nbytes == size and id(each) not in self._taken), None)
        if room is None:
            room = np.zeros(size, np.uint8)
            self._rooms.append(room)
        self._taken.add(id(room))
        return room.view(dtype).reshape(shape)

    def _release(self, following: Sequence[Step]) -> None:
        """Give the rooms back that no following step reads."""
        wanted = {name for step in following for name in step["inputs"]}
        addresses = {array.ctypes.data for name, array in self._arrays.items() if name in wanted}
        self._taken = {id(room) for room in self._rooms if room.ctypes.data in addresses}
