"""Networks on the agent's device: hilt_runtime runs them, through the agent's driver and in its memory."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import pynq

from hilt_runtime import Inference, InferenceError, MemoryNeededError, Network, NetworkError, read_bundle
from hilt_runtime.arrays import decode_arrays, encode_arrays
from hilt_runtime.device import VtaDevice
from hilt_runtime.register_protocol import DeviceRun

from .driver import Driver, DriverError
from .memory import ContiguousMemory, OutOfContiguousMemoryError
from .memory_limit import limited_memory
from .protocol import MAX_BODY_BYTES, AgentFailure, NetworkRan, Record, RunNetwork

_BEAT_SECONDS = 1.0
_LEAST_OVERLAPPED = 4
"""Of so many inferences and more, one half runs one by one, and the other half overlapped."""
_MOST_ALONE = 32


class AgentDevice(VtaDevice):
    """The device that the agent has programmed."""

    def __init__(self, driver: Driver, memory: ContiguousMemory) -> None:
        self._driver = driver
        self._memory = memory
        self._buffers = 0
        self.parameters = driver.manifest.parameters
        self.isa = driver.manifest.isa
        self.table = driver.manifest.table
        self.window = driver.manifest.window
        self.bands = driver.manifest.bands
        self.clock_hz = driver.manifest.clock_hz

    def allocate(self, size: int) -> Any:
        """See Device."""
        self._buffers += 1
        try:
            return self._memory.scratch("network {}".format(self._buffers), size)
        except OutOfContiguousMemoryError:
            free = getattr(pynq.Device.active_device, "contiguous_bytes_free", None)
            there = _kernel_bytes_free() if free is None else int(free)
            known = "" if there is None else ", {} bytes are free".format(there)
            text = "the network needs {} bytes of contiguous memory{}: raise the board's CMA (cma= at boot)"
            raise MemoryNeededError(text.format(size, known)) from None

    def run(self, instructions: Any, count: int, limit_seconds: float, expected_seconds: float = 0.0) -> DeviceRun:
        """See Device."""
        return self._driver.run(instructions, count, limit_seconds, expected_seconds)


class Networks:
    """The network that was run last stays in memory for the next inference."""

    def __init__(self, driver: Driver, memory: ContiguousMemory, blobs: Path) -> None:
        self._driver = driver
        self._memory = memory
        self._blobs = blobs
        self._key: Optional[Tuple[str, bool]] = None
        self._network: Optional[Network] = None

    def forget(self) -> None:
        """Drop the network: its memory is used for something else, or gone with the old bitstream."""
        network, self._key, self._network = self._network, None, None
        if network is not None:
            network.close()

    def run(self, message: RunNetwork, beat: Callable[[], None], stopped: Callable[[], bool]) -> Record:
        """Run inferences, until `stopped` after one. Answers NetworkRan, or Failure where the network cannot run."""
        try:
            with _Heart(beat), limited_memory():
                return self._run(message, stopped)
        except MemoryNeededError as error:
            self.forget()
            return AgentFailure(code="out_of_memory", message=str(error)[:4096])
        except InferenceError as error:
            self.forget()
            return NetworkRan(outcome=error.outcome, reason=str(error)[:4096])
        except MemoryError:
            self.forget()
            text = "the network needs more memory than the board has: run fewer images at once"
            return AgentFailure(code="network_refused", message=text)
        except (NetworkError, DriverError) as error:
            return AgentFailure(code="network_refused", message=str(error)[:4096])

    def _run(self, message: RunNetwork, stopped: Callable[[], bool]) -> Record:
        network = self._placed(message)
        inputs, _ = decode_arrays(message.inputs)
        given = [batch for batch in _batches(inputs, message.images) for _ in range(message.repeat)]
        alone = len(given) if len(given) < _LEAST_OVERLAPPED else min(len(given) // 2, _MOST_ALONE)
        results = _Results(message, alone)
        for number, inference in enumerate(_inferences(network, given, alone)):
            if stopped():
                return AgentFailure(code="network_refused", message="the client is gone: its network was ended")
            results.take(number, inference)
        result = results.encoded(network, len(given) - alone)
        if len(result) > MAX_BODY_BYTES:
            text = "the results take {} bytes, a reply holds {}: run fewer images at once, or without --verify"
            return AgentFailure(code="network_refused", message=text.format(len(result), MAX_BODY_BYTES))
        return NetworkRan(outcome="ok", result=result)

    def _placed(self, message: RunNetwork) -> Network:
        key = (message.bundle, message.keep)
        if self._network is None or self._key != key:
            self.forget()
            self._memory.clear()
            bundle = read_bundle(self._blobs / message.bundle, message.name)
            device = AgentDevice(self._driver, self._memory)
            self._network = Network(bundle, device, keep=message.keep)
            self._key = key
        return self._network


class _Results:
    """The results of a run: the times of the inferences that run alone, and the last outputs of each image."""

    def __init__(self, message: RunNetwork, alone: int) -> None:
        self._message = message
        self._alone = alone
        self._runs: List[Dict[str, Any]] = []
        self._outputs: Dict[str, Any] = {}
        self._overlapped_since = time.perf_counter()

    def take(self, number: int, inference: Inference) -> None:
        if number < self._alone:
            self._runs.append({"seconds": inference.seconds, "steps": [list(step) for step in inference.steps]})
            self._overlapped_since = time.perf_counter()
        image, turn = divmod(number, self._message.repeat)
        if turn == self._message.repeat - 1:
            for name, value in (inference.tensors or inference.outputs).items():
                self._outputs[name if self._message.images == 1 else "{}/{}".format(image, name)] = value

    def encoded(self, network: Network, overlapped: int) -> bytes:
        """Return the outputs and facts as bytes; `overlapped` inferences ran overlapped, and have ended now."""
        facts: Dict[str, Any] = {"runs": self._runs, "engine": network.engine.reason, "engines": network.engines()}
        facts["overlapped"] = {"images": overlapped, "seconds": time.perf_counter() - self._overlapped_since}
        return encode_arrays(self._outputs, facts)


def _inferences(network: Network, given: List[Dict[str, Any]], alone: int) -> Iterator[Inference]:
    """Run the first ones one by one, for their latency, the others overlapped, for the throughput."""
    for inputs in given[:alone]:
        yield network.run(inputs)
    yield from network.run_each(given[alone:])


def _batches(inputs: Dict[str, Any], images: int) -> List[Dict[str, Any]]:
    """Return the inputs of each inference: the first axis of every input counts them where there are several."""
    if images == 1:
        return [inputs]
    for name, value in inputs.items():
        if not value.ndim or len(value) != images:
            raise NetworkError("input {} has the shape {}, not that of {} images".format(name, value.shape, images))
    return [{name: value[number] for name, value in inputs.items()} for number in range(images)]


class _Heart:
    """Says every second that the worker lives: an operator in numpy may take longer than the daemon's patience."""

    def __init__(self, beat: Callable[[], None]) -> None:
        self._beat = beat
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: Any) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(_BEAT_SECONDS):
            self._beat()


def _kernel_bytes_free() -> Optional[int]:
    """Return the free bytes of the kernel's contiguous memory, if it says so."""
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("CmaFree:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return None
