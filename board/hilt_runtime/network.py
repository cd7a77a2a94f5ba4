"""A compiled network on a device, shared by threads: one inference, many that overlap, or batches."""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Deque, Dict, Iterable, Iterator, List, Mapping, Optional, Type, Union

import numpy as np

from hilt_runtime.batches import split
from hilt_runtime.bundle import Bundle, read_bundle
from hilt_runtime.device import PynqDevice, VtaDevice
from hilt_runtime.errors import ClosedError, DeviceError, InputError, MemoryNeededError
from hilt_runtime.native import library
from hilt_runtime.placed_network import Inference, PlacedNetwork

_AT_ONCE = 2
"""Inferences that overlap: the processor computes one image's steps while VTA computes those of another."""


class Running:
    """An inference that was started."""

    def __init__(self, future: "Future[Inference]") -> None:
        self._future = future

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self._future.done()

    def wait(self) -> Inference:
        """Return the inference when it has ended. Raises as Network.run does."""
        return self._future.result()

    def abandon(self) -> None:
        """Return when it has ended, or never begins: its result, or its error, is of no interest."""
        if not self._future.cancel():
            self._future.exception()


class Network:
    """A network in the memory of a device, ready to run. Any thread may use it; a context manager that closes it."""

    def __init__(
        self,
        bundle: Union[str, Path, Bundle],
        device: Optional[VtaDevice] = None,
        bitstream: Optional[str] = None,
        keep: bool = False,
        engine: Optional[library.Engine] = None,
    ) -> None:
        """Place a bundle on a device.

        Args:
            bundle: The file that `hilt compile` wrote, or the result of `read_bundle` for it.
            device: The device that runs it; without one, VTA on this very board.
            bitstream: The .bit file to program that with; without one the board must be programmed already.
            keep: Give every tensor memory of its own, so that all can be looked at afterwards.
            engine: The engine of the processor's steps; without one hilt_runtime.native.library.engine decides.

        Raises:
            BundleError: The file is no bundle, damaged or altered.
            TargetError: It is for another accelerator.
            MemoryNeededError: The board has too little contiguous memory.
            DeviceError: The device cannot be used.
        """
        self.bundle = bundle if isinstance(bundle, Bundle) else read_bundle(bundle)
        target = self.bundle.manifest["target"]
        self.device = device or PynqDevice(target, bitstream)
        self.device.check(target, self.bundle.name)
        self._turn = threading.Lock()
        first = PlacedNetwork(self.bundle, self.device, self._turn, engine or library.engine(), keep)
        self._placed: List[PlacedNetwork] = [first]
        self._idle = [first]
        self._changed = threading.Condition()
        self._threads: Optional[ThreadPoolExecutor] = None
        self._closed = False

    @property
    def engine(self) -> library.Engine:
        """The library that computes the processor's steps, or None for numpy, and why."""
        return self._placed[0].engine

    def engines(self) -> Dict[str, str]:
        """Return which engine computes each step of the processor: see PlacedNetwork.engines."""
        return self._placed[0].engines()

    @property
    def fixed_memory(self) -> List[Any]:
        """The memory that no inference changes: constants and instructions."""
        return [self._placed[0].constants, *(program for each in self._placed for program in each.programs)]

    def __call__(self, *inputs: Any) -> Any:
        """Return the network's output for its inputs, in their order; a tuple where it has several outputs.

        The first axis may have any length where it counts images in every input and output: then the inferences
        overlap, and the outputs are as long. Raises as `run`.
        """
        names = [each["name"] for each in self.bundle.inputs]
        if len(inputs) != len(names):
            raise InputError("{} inputs were given, the network has {}: {}".format(len(inputs), len(names), names))
        given = dict(zip(names, inputs))
        batch = split(self.bundle.inputs, self.bundle.outputs, given)
        if batch is None:
            outputs = tuple(self.run(given).outputs.values())
        else:
            count, parts = batch
            made = [list(inference.outputs.values()) for inference in self.run_each(parts)]
            outputs = tuple(np.concatenate(values)[:count] for values in zip(*made))
        return outputs[0] if len(outputs) == 1 else outputs

    def run(self, inputs: Mapping[str, Any]) -> Inference:
        """Run one inference; it waits while others hold the network.

        Raises:
            InputError: An input is missing, or of another shape or type.
            StepError: The processor cannot compute a step with these inputs.
            InferenceError: VTA did not finish.
            ClosedError: The network is closed.
        """
        with self._changed:
            self._require_open()
        return self._run(inputs)

    def start(self, inputs: Mapping[str, Any]) -> Running:
        """Start an inference with a copy of the inputs, and return at once.

        Two run at a time, the processor's steps of one beside VTA's of the other, if the board has memory for both;
        later ones wait for them, in order. Raises ClosedError.
        """
        copied = {name: np.array(value) for name, value in inputs.items()}
        with self._changed:
            self._require_open()
            if self._threads is None:
                self._place_again()
                self._threads = ThreadPoolExecutor(len(self._placed), "hilt network")
            return Running(self._threads.submit(self._run, copied))

    def run_each(self, batches: Iterable[Mapping[str, Any]]) -> Iterator[Inference]:
        """Run an inference for each of the inputs, overlapped, and give them in order. Raises as `run`.

        No more inputs are taken than run at a time, so that they may be made on the way.
        """
        running: Deque[Running] = deque()
        try:
            for inputs in batches:
                running.append(self.start(inputs))
                if len(running) > _AT_ONCE:
                    yield running.popleft().wait()
            while running:
                yield running.popleft().wait()
        finally:
            for each in running:
                each.abandon()

    def close(self) -> None:
        """Wait for the inferences that were started, and give the memory back. Closing twice is allowed."""
        with self._changed:
            self._closed, threads = True, self._threads
        if threads is not None:
            threads.shutdown()
        with self._changed:
            self._changed.wait_for(lambda: len(self._idle) == len(self._placed))
            for placed in self._placed:
                placed.close()

    def __enter__(self) -> "Network":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        self.close()

    def _place_again(self) -> None:
        """Place the network a second time; constants are shared. Without memory for it inferences run one by one."""
        first = self._placed[0]
        try:
            second = PlacedNetwork(self.bundle, self.device, self._turn, first.engine, first.keep, first)
        except (DeviceError, MemoryNeededError):
            return
        self._placed.append(second)
        self._idle.append(second)

    def _run(self, inputs: Mapping[str, Any]) -> Inference:
        placed = self._take()
        try:
            return placed.run(inputs)
        finally:
            self._give_back(placed)

    def _take(self) -> PlacedNetwork:
        with self._changed:
            self._changed.wait_for(lambda: bool(self._idle))
            return self._idle.pop(0)

    def _give_back(self, placed: PlacedNetwork) -> None:
        with self._changed:
            self._idle.append(placed)
            self._idle.sort(key=self._placed.index)  # the first one, whose plan `engines` shows, is taken first
            self._changed.notify_all()

    def _require_open(self) -> None:
        if self._closed:
            raise ClosedError("the network is closed: make it again to run it")
