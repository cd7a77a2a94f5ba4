"""A whole inference as one plan: made at the first inference, step by step as it runs, then walked by one call."""

from __future__ import annotations

import bisect
import time
from typing import Any, Callable, Dict, FrozenSet, List, Mapping, Sequence, Set, Tuple

import numpy as np

from hilt_runtime.layout import channels_first, four
from hilt_runtime.native.bands import apart, joined, rows_as_channels
from hilt_runtime.native.folds import folds_of_floats
from hilt_runtime.native.in_place import rows_of
from hilt_runtime.native.joins import joined_in_place
from hilt_runtime.native.plan_integer import quantising_factors
from hilt_runtime.native.plans import execute, plan_operator
from hilt_runtime.native.readings import quiet_steps, shared_out
from hilt_runtime.native.split import AWAKE_MICROSECONDS, work_of
from hilt_runtime.native.steps import KERNELS, Builder, NotNativeError, StepRecord, copy, moved_view, strides_of
from hilt_runtime.native.strip_plan import chain_records
from hilt_runtime.native.strips import KnownTensors, StripChain, chains

STEP_INSTRUCTIONS = 200
"""Instructions of a step besides those for its elements, estimated."""
Call = Callable[[], Any]
Compute = Callable[[Sequence[Any]], List[Any]]
Step = Mapping[str, Any]


def _fold_numbers(fold: Mapping[str, int], shape: Sequence[int], rows: int) -> List[int]:
    return [*shape, fold["kernel"], fold["stride"], fold["left"], 0, rows]


class ShapeChangedError(Exception):
    """A step of numpy's gave a tensor of another shape or type than in the first inference."""


class ForbiddenError(Exception):
    """A native step met values that forbid it; `place` is that of the network's step."""

    def __init__(self, place: int) -> None:
        super().__init__("a value forbids step {}".format(place))
        self.place = place


class InferencePlan:
    """The steps of a network for the native engine, numpy's steps among them, and every tensor's memory."""

    def __init__(self, library: Any, constants: Mapping[str, Any], packed: Mapping[str, Any], threads: int = 1) -> None:
        """`constants` are the processor's arrays by name, `packed` VTA's buffers as int8 arrays by name.

        `threads` run the pieces of a large step.
        """
        self._library = library
        library.hilt_threads(threads, AWAKE_MICROSECONDS)
        self.builder = Builder(threads)
        self._packed = packed
        self.values: Dict[str, Any] = {}
        """Every tensor of the processor by name, written again by each inference."""
        self.reasons: Dict[str, str] = {}
        """Why numpy computes a step, by the step's name."""
        self._calls: Dict[int, Call] = {}
        self._ends: List[int] = []
        self._results: Dict[int, Any] = {}
        self._quiet: Set[int] = set()
        self._work: List[float] = []
        self._steps: Any = None
        for name, array in constants.items():
            self.values[name] = self.builder.constant(np.asarray(array, order="C"))

    # --- the first inference ---

    def begin(self, inputs: Mapping[str, Any]) -> None:
        """Take the first inference's inputs."""
        for name, array in inputs.items():
            self.values[name] = np.array(array, order="C")

    def add_call(self, call: Call) -> Any:
        """Add a step of Python's, and run it."""
        self._calls[len(self.builder.records)] = call
        self.builder.python()
        self._ends.append(len(self.builder.records))
        return call()

    def add_pack(self, step: Step) -> None:
        """Add and run the packing or folding of a tensor. Raises NotNativeError."""
        data, packed = self.values[step["tensor"]], self._packed[step["buffer"]]
        if data.dtype != np.int8 or packed.dtype != np.int8:
            raise NotNativeError("a tensor that is not int8")
        outer, inner, height, width, batch, block = packed.shape
        last, before = "channels_last" in step, len(self.builder.records)
        if "rows" in step.get("fold", {}):
            data = rows_as_channels(self.builder, data, step["fold"]["rows"], last)
        images, channels, rows, columns = four(channels_first(data).shape if last else data.shape)
        if columns != width and "fold" not in step:
            raise NotNativeError("a tensor of another size than its buffer")
        if rows != height:
            data, images, rows = apart(self.builder, data, height, batch, last), batch, height
        if "fold" in step:
            shape = (images, channels, rows, columns, outer, inner, width, batch, block)
            self._native("fold", [data, packed], [*_fold_numbers(step["fold"], shape, rows), last, 0], before)
            return
        numbers = [images, channels, rows * columns, outer, inner, batch, block, last]
        self._native("pack", [data, packed], numbers, before)

    def add_view(self, step: Step) -> None:
        """Add the reading back of a tensor that is read where it lies (native/in_place.py)."""
        self._ends.append(len(self.builder.records))
        self.values[step["tensor"]] = rows_of(self._packed[step["buffer"]], step["shape"])

    def add_unpack(self, step: Step) -> None:
        """Add and run the reading back of a tensor. Raises NotNativeError."""
        packed, shape = self._packed[step["buffer"]], step["shape"]
        outer, inner, height, width, batch, block = packed.shape
        images, channels, rows, columns = four(shape)
        if columns != width:
            raise NotNativeError("a tensor of another size than its buffer")
        before, banded = len(self.builder.records), rows != height
        parts = (batch, channels, height, columns) if banded else shape
        out = self.builder.new(parts, np.int8)
        numbers = [batch if banded else images, channels, height * columns, outer, inner, batch, block]
        self.builder.step("unpack", [packed, out], numbers)
        if banded:
            out = joined(self.builder, out, shape)
        self._run_new(before)
        self.values[step["tensor"]] = out

    def add_operator(self, step: Step, compute: Compute) -> None:
        """Add and run an operator: natively, else by `compute` in numpy. Constants are computed once."""
        builder = self.builder
        inputs = [self.values[name] if name else None for name in step["inputs"]]
        if all(array is None or builder.is_constant(array) for array in inputs):
            outputs = [builder.constant(np.array(array, order="C")) for array in compute(inputs)]
            self._ends.append(len(builder.records))
            self.values.update(zip(step["outputs"], outputs))
            return
        try:
            before = len(builder.records)
            outputs = plan_operator(builder, step["op"], inputs, step["attributes"])
            self._run_new(before)
            self.values.update(zip(step["outputs"], outputs))
        except NotNativeError as error:
            self.add_numpy(step, step["outputs"], lambda: compute(inputs), str(error))

    def add_packed(self, step: Step) -> None:
        """Add and run an operator on VTA's buffers. Raises NotNativeError."""
        builder, buffers = self.builder, step["packed"]
        inputs = [
            self._packed[buffers[name]] if name in buffers else self.values[name] if name else None
            for name in step["inputs"]
        ]
        target = self._packed[buffers[step["outputs"][0]]]
        before = len(builder.records)
        with builder.writing_to(target):
            made = plan_operator(builder, step["op"], inputs, step["attributes"])[0]
        if made is not target:
            if made.shape != target.shape or made.dtype != target.dtype:
                del builder.records[before:]
                raise NotNativeError("a result of another shape than its buffer")
            strides = strides_of(made.shape)
            copy(builder, made, target, made.shape, (0, strides), (0, strides))
        self._run_new(before)

    def add_numpy(self, step: Step, names: Sequence[str], compute: Callable[[], List[Any]], reason: str) -> None:
        """Add and run a step of numpy's, whose results keep their memory."""
        self.reasons[step["name"]] = reason
        outputs: List[Any] = []

        def call() -> None:
            results = compute()
            if not outputs:
                outputs.extend(np.array(result, order="C") for result in results)
                return
            for kept, result in zip(outputs, results):
                if kept.shape != result.shape or kept.dtype != result.dtype:
                    raise ShapeChangedError(
                        "{} {} for {} {}".format(result.dtype, result.shape, kept.dtype, kept.shape)
                    )
                np.copyto(kept, result)

        self.add_call(call)
        self.values.update(zip(names, outputs))

    def _native(self, kernel: str, arrays: Sequence[Any], numbers: Sequence[int], before: int) -> None:
        """Add a record behind those from `before` on, and run them. Raises NotNativeError."""
        self.builder.step(kernel, arrays, numbers)
        self._run_new(before)

    def _run_new(self, before: int) -> None:
        """Run the records from `before` on, and end the step. Raises NotNativeError and takes them back if refused."""
        builder = self.builder
        steps, buffers = builder.encoded(before)
        try:
            if execute(self._library, steps, buffers):
                raise NotNativeError("a value forbids it")
        except NotNativeError:
            del builder.records[before:]
            raise
        self._ends.append(len(builder.records))

    def finish(self, steps: Sequence[Step], kept: Set[str]) -> None:
        """End the first inference: the plan is whole.

        Args:
            steps: The steps of the network; each was added.
            kept: The tensors that are read behind the last step.
        """

        def native(step: Step) -> bool:
            return step["name"] not in self.reasons

        joined = joined_in_place(steps, self._tensors(), native)
        for place in sorted(joined):
            self._join(steps[place], place)
        found = chains(steps, self._tensors(), native, kept)
        for chain in reversed(found):
            self._run_in_strips(steps[chain.first : chain.last], chain)
        chained = {place for chain in found for place in range(chain.first, chain.last)}
        buffers = {name: {"shape": array.shape} for name, array in self._packed.items()}
        for place, before in folds_of_floats(steps, buffers, native, kept).items():
            if before not in chained:
                self._fold_floats(steps[before], steps[place], place)
        self._read_seldom(quiet_steps(steps, self._tensors(), native) - chained - joined)
        self._steps, self._buffers = self.builder.encoded(0)
        self._times = np.zeros(2 * len(self._steps) + 2)
        self._addresses = tuple(array.ctypes.data for array in (self._steps, self._buffers, self._times))
        refused = self._library.hilt_check(self._addresses[0], len(self._steps), self._addresses[1], len(self._buffers))
        if refused >= 0:
            raise NotNativeError("step {} reaches outside of its tensors".format(refused))

    def _join(self, step: Step, place: int) -> None:
        """Let the parts of a Concat be made where the joined tensor lies, and take its copies out."""
        bytes_of_all = self.values[step["outputs"][0]].reshape(-1).view(np.uint8)
        first = 0
        for name in step["inputs"]:
            old = self.values[name]
            new = bytes_of_all[first : first + old.nbytes].view(old.dtype).reshape(old.shape)
            self.builder.move(old, new)
            there = range(old.ctypes.data, old.ctypes.data + old.nbytes)
            for other, array in self.values.items():
                if array.ctypes.data in there and array.nbytes:
                    self.values[other] = moved_view(array, old, new)
            first += old.nbytes
        self._replace([0, *self._ends][place], self._ends[place], [])

    def _fold_floats(self, quantisation: Step, fold: Step, place: int) -> None:
        """Put the record of a fold of floats in the place of a quantisation's and its fold's."""
        records, before = self.builder.records, len(self.builder.records)
        data, packed = self.values[quantisation["inputs"][0]], self._packed[fold["buffer"]]
        outer, inner, height, width, batch, block = packed.shape
        last = "channels_last" in fold
        images, channels, rows, columns = four(channels_first(data).shape if last else data.shape)
        if rows != height or not data.flags.c_contiguous:
            return
        shape = (images, channels, rows, columns, outer, inner, width, batch, block)
        scale, inverse, _ = quantising_factors(quantisation["attributes"])
        numbers = [*_fold_numbers(fold["fold"], shape, rows), last, 1]
        self.builder.step("fold", [data, packed], numbers, [scale, inverse])
        encoded = self.builder.encoded(before)
        own = records[before:]
        del records[before:]
        if self._library.hilt_check(encoded[0].ctypes.data, len(own), encoded[1].ctypes.data, len(encoded[1])) >= 0:
            return
        first, end = [0, *self._ends][place - 1], self._ends[place]
        self._replace(first, end, own)
        self._ends[place - 1] = first

    def _replace(self, first: int, last: int, own: Sequence[StepRecord]) -> None:
        """Put records in the place of others, and move those behind."""
        more = len(own) - (last - first)
        self.builder.records[first:last] = own
        self._ends = [end + more if end >= last else end for end in self._ends]
        self._calls = {place + more if place >= last else place: call for place, call in self._calls.items()}

    def _read_seldom(self, quiet: FrozenSet[int]) -> None:
        """Let the clock not be read behind steps that native ones follow; note the work of each step."""
        records, first = self.builder.records, 0
        for place, end in enumerate(self._ends):
            own = records[first:end]
            self._work.append(float(sum(STEP_INSTRUCTIONS + self._work_of(record) for record in own)))
            if place in quiet and end < len(records) and records[end].kernel:
                self._quiet.add(place)
                records[first:end] = [record._replace(quiet=1) for record in own]
            first = end

    def _work_of(self, record: StepRecord) -> int:
        if not record.kernel:
            return 0
        arrays = [self.builder.arrays[place] for place in record.places]
        return work_of(KERNELS[record.kernel - 1], arrays, record.numbers)

    def _tensors(self) -> KnownTensors:
        values = self.values

        def constant(name: str) -> Any:
            return values[name] if name in values and self.builder.is_constant(values[name]) else None

        return KnownTensors(
            lambda name: values[name].shape if name in values else None, lambda name: values[name].itemsize, constant
        )

    def _run_in_strips(self, steps: Sequence[Step], chain: StripChain) -> None:
        """Put the records of a chain in the place of its steps'."""
        first, last = ([0, *self._ends][place] for place in (chain.first, chain.last))
        records = self.builder.records
        try:
            own = chain_records(self.builder, steps, chain, self.values)
        except NotNativeError:
            return
        records[first:last] = own
        more = len(own) - (last - first)
        for place in range(chain.first, len(self._ends)):
            self._ends[place] = max(self._ends[place], last) + more
        self._calls = {place + more if place >= last else place: call for place, call in self._calls.items()}

    # --- later inferences ---

    def run(self, inputs: Mapping[str, Any]) -> None:
        """Run an inference; the tensors are in `values`. Raises as the steps of Python's do, and ShapeChangedError."""
        for name, array in inputs.items():
            np.copyto(self.values[name], array)
        steps, buffers, times = self._addresses
        at, count = 0, len(self._steps)
        while True:
            at = self._library.hilt_run(steps, at, count, buffers, times)
            if at == count:
                return
            if at < 0:
                raise ForbiddenError(bisect.bisect_right(self._ends, -1 - at))
            began = time.perf_counter()
            self._results[at] = self._calls[at]()
            self._times[2 * at : 2 * at + 2] = began, time.perf_counter()
            at += 1

    def times(self) -> Tuple[Any, Dict[int, Any]]:
        """Return the times of the last inference and the results of its calls, for `step_times`."""
        return self._times.copy(), dict(self._results)

    def step_times(self, times: Any, results: Mapping[int, Any]) -> List[Tuple[float, float, Any]]:
        """Return for each step of the network its begin and end (time.perf_counter) and its call's result."""
        seconds, first, last = times.tolist(), 0, float(times[0])
        found = []
        for end in self._ends:
            if end == first:  # a view, or a constant
                found.append((last, last, None))
                continue
            last = seconds[2 * end - 1]
            found.append((seconds[2 * first], last, results.get(end - 1)))
            first = end
        return shared_out(found, self._quiet, self._work)
