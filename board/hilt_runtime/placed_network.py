"""A compiled network in a device's memory: placed once, programs relocated once, then one inference at a time."""

from __future__ import annotations

import threading
import time
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Union, overload

import numpy as np

from hilt_runtime import operators
from hilt_runtime.bundle import Bundle
from hilt_runtime.device import VtaDevice
from hilt_runtime.errors import DeviceError, InferenceError, InputError, MemoryNeededError, NetworkError, StepError
from hilt_runtime.layout import channels_first, fold, pack, unpack
from hilt_runtime.native import library
from hilt_runtime.native.in_place import read_in_place
from hilt_runtime.native.inference import ForbiddenError, InferencePlan, ShapeChangedError
from hilt_runtime.native.steps import NotNativeError

_MASK = np.uint64(0xFFFFFFFF)
_HIGHEST = 1 << 32
"""VTA's address registers have 32 bits."""


class StepRun(NamedTuple):
    """One step of an inference.

    It has its kind (pack, unpack, vta, cpu), its name, its begin and end in seconds from the start of the
    inference, and for
    VTA the seconds from its start to `done` and the cycles that it counted.
    """

    kind: str
    name: str
    began: float
    ended: float
    device_seconds: float = 0.0
    cycles: Optional[int] = None


class StepRuns(Sequence[StepRun]):
    """The steps of an inference, made when they are first looked at."""

    def __init__(self, make: Callable[[], List[StepRun]]) -> None:
        self._make = make
        self._runs: Optional[List[StepRun]] = None

    @property
    def _all(self) -> List[StepRun]:
        if self._runs is None:
            self._runs = self._make()
        return self._runs

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[StepRun]:
        return iter(self._all)

    @overload
    def __getitem__(self, place: int) -> StepRun: ...

    @overload
    def __getitem__(self, place: slice) -> List[StepRun]: ...

    def __getitem__(self, place: Union[int, slice]) -> Union[StepRun, List[StepRun]]:
        return self._all[place]


class Inference(NamedTuple):
    """The outputs by name, every tensor by name where they were kept, and how each step ran."""

    outputs: Dict[str, Any]
    tensors: Dict[str, Any]
    steps: Sequence[StepRun]
    seconds: float


def _declared(output: Dict[str, Any], made: Any) -> Any:
    """Return an output. Raises StepError if its shape or type is not the one that the bundle declares."""
    if list(made.shape) != list(output["shape"]) or made.dtype != np.dtype(output["dtype"]):
        text = "output {} is {} {}, and the bundle declares {} {}: compile the network anew"
        wanted = (output["dtype"], tuple(output["shape"]))
        raise StepError(text.format(output["name"], made.dtype, tuple(made.shape), *wanted))
    return made


class PlacedNetwork:
    """A network in the memory of a device. One inference at a time: Network shares it between threads."""

    def __init__(
        self,
        bundle: Bundle,
        device: VtaDevice,
        turn: threading.Lock,
        engine: library.Engine,
        keep: bool = False,
        constants: Optional["PlacedNetwork"] = None,
    ) -> None:
        """Place a bundle on a device that has been checked against it.

        Args:
            bundle: The network.
            device: The device that runs it.
            turn: Held while VTA runs a program.
            engine: The engine of the processor's steps.
            keep: Give every tensor memory of its own, so that all can be looked at afterwards.
            constants: The same network, whose constants this one reads.

        Raises:
            MemoryNeededError: The board has too little contiguous memory.
            DeviceError: The device cannot be used.
        """
        self.bundle = bundle
        self.device = device
        self.keep = keep
        self.engine = engine
        """The library that computes the processor's steps, or None for numpy, and why."""
        self._turn = turn
        self._plan: Optional[InferencePlan] = None
        self._wanted = [(each["name"], tuple(each["shape"]), np.dtype(each["dtype"])) for each in bundle.inputs]
        self._dirty: List[Any] = []
        self._reads: List[Any] = []
        self._memory: List[Any] = []
        self._addresses: Dict[str, int] = {}
        self._packed: Dict[str, Any] = {}
        self._views: Dict[str, Any] = {}
        manifest = bundle.manifest
        self._in_place = [manifest["steps"][place] for place in read_in_place(manifest)]
        self._own = {name: bundle.arrays[part] for name, part in manifest["arrays"].items()}
        try:
            self.constants: Any = self._place_constants() if constants is None else constants.constants
            self._address_constants()
            self._place_tensors()
            self.programs = [self._relocated(program) for program in manifest["programs"]]
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Give the memory back that this placement allocated."""
        memory, self._memory = self._memory, []
        self._plan, self._packed, self._views, self._dirty, self._reads = None, {}, {}, [], []
        for each in memory:
            self.device.free(each)

    def run(self, inputs: Mapping[str, Any]) -> Inference:
        """Run one inference.

        Raises:
            InputError: An input is missing, or of another shape or type.
            StepError: The processor cannot compute a step with these inputs.
            InferenceError: VTA did not finish.
        """
        started = time.perf_counter()
        given = self._checked(inputs)
        try:
            values, steps = self._native(given, started) if self.engine.library else self._by_numpy(given, started)
        except (ShapeChangedError, NotNativeError) as error:
            self.engine, self._plan = library.Engine(None, "numpy: {}".format(error)), None
            values, steps = self._by_numpy(given, started)
        outputs = {each["name"]: _declared(each, np.array(values[each["name"]])) for each in self.bundle.outputs}
        return Inference(outputs, self._all(values) if self.keep else {}, steps, time.perf_counter() - started)

    def engines(self) -> Dict[str, str]:
        """Return which engine computes each step of the processor, and why where it is numpy.

        The native engine has its plan after the first inference; before that its steps are all taken to be native.
        """
        reasons = self._plan.reasons if self._plan is not None else {}
        native = self.engine.library is not None
        return {
            step["name"]: ("numpy: " + reasons[step["name"]] if step["name"] in reasons else "native")
            if native
            else self.engine.reason
            for step in self.bundle.manifest["steps"]
            if step["kind"] != "vta"
        }

    def _by_numpy(self, given: Mapping[str, Any], started: float) -> Any:
        """Run the steps one by one; return the tensors and the steps' runs."""
        values: Dict[str, Any] = {**self._own, **given}
        runs = [self._timed(step, started, _STEPS[step["kind"]], values) for step in self.bundle.manifest["steps"]]
        return values, runs

    def _native(self, given: Mapping[str, Any], started: float) -> Any:
        """Run the plan, which the first inference makes; return the tensors and the steps' runs."""
        steps = self.bundle.manifest["steps"]
        if self._plan is None:
            plan = InferencePlan(self.engine.library, self._own, self._packed, self.engine.threads)
            plan.begin(given)
            runs = [self._timed(step, started, _PLANNED[step["kind"]], plan) for step in steps]
            plan.finish(steps, self._kept(steps))
            self._plan = plan
            return plan.values, runs
        plan = self._plan
        try:
            plan.run(given)
        except ForbiddenError as error:
            step = steps[error.place]
            self._compute(step, [plan.values[name] if name else None for name in step["inputs"]])
            raise NotNativeError("step {} is forbidden natively, but not in numpy".format(step["name"])) from None
        times, results = plan.times()

        def runs_of() -> List[StepRun]:
            found = zip(steps, plan.step_times(times, results))
            return [_run_of(step, began - started, ended - started, run) for step, (began, ended, run) in found]

        return plan.values, StepRuns(runs_of)

    def _kept(self, steps: Sequence[Mapping[str, Any]]) -> Set[str]:
        """Return the tensors that are read behind the last step."""
        outputs = {each["name"] for each in self.bundle.outputs}
        return outputs | {name for step in steps for name in step.get("outputs", ())} if self.keep else outputs

    def _timed(self, step: Dict[str, Any], started: float, run: Callable[..., Any], state: Any) -> StepRun:
        began = time.perf_counter()
        try:
            result = run(self, step, state)
        except (NetworkError, ShapeChangedError, NotNativeError, ForbiddenError):
            raise
        except Exception as error:  # numpy raises many; none is more than this step's
            what = step.get("op", step["kind"])
            text = "step {} ({}) cannot be computed with these inputs: {}"
            raise StepError(text.format(step["name"], what, str(error) or type(error).__name__)) from error
        return _run_of(step, began - started, time.perf_counter() - started, result)

    # --- placing ---

    def _allocate(self, size: int) -> Any:
        try:
            memory = self.device.allocate(max(size, 4096))
            self._memory.append(memory)
            if int(memory.physical_address) + memory.nbytes > _HIGHEST:
                text = "memory at 0x{:x} is beyond VTA's 32-bit addresses: lower the board's CMA"
                raise DeviceError(text.format(int(memory.physical_address)))
            return memory
        except MemoryNeededError as error:
            total = sum(
                self.bundle.manifest["memory"][key] for key in ("constants", "separate" if self.keep else "activations")
            )
            raise MemoryNeededError("{} ({} bytes in all)".format(error, total)) from None

    def _place_constants(self) -> Any:
        memory = self._allocate(self.bundle.manifest["memory"]["constants"])
        for constant in self.bundle.manifest["constants"].values():
            data = self.bundle.arrays[constant["part"]].reshape(-1).view(np.uint8)
            offset = constant["offset"]
            memory[offset : offset + data.nbytes] = data
        memory.flush()
        return memory

    def _address_constants(self) -> None:
        base = int(self.constants.physical_address)
        for name, constant in self.bundle.manifest["constants"].items():
            self._addresses[name] = base + constant["offset"]

    def _place_tensors(self) -> None:
        activations = self._allocate(self.bundle.manifest["memory"]["separate" if self.keep else "activations"])
        base = int(activations.physical_address)
        for name, tensor in self.bundle.manifest["buffers"].items():
            offset = tensor["separate" if self.keep else "offset"]
            view = activations[offset : offset + tensor["bytes"]]
            self._addresses[name] = base + offset
            self._views[name] = view
            self._packed[name] = np.asarray(view).view(np.int8).reshape(tensor["shape"])

    def _relocated(self, program: Dict[str, Any]) -> Any:
        """Return a program's instructions in contiguous memory, their addresses those of this device.

        Each LOAD and STORE lies within its buffer (hilt_runtime.memory_check), and each buffer below 4 GiB: no address
        wraps.
        """
        words = self.bundle.arrays[program["instructions"]].copy()
        bit = np.uint64(self.bundle.manifest["target"]["dram_base_bit"])
        for relocation in program["relocations"]:
            chosen = self.bundle.arrays[relocation["part"]]
            base, rest = divmod(self._addresses[relocation["buffer"]], relocation["element_bytes"])
            if rest:
                text = "buffer {} is at no multiple of its {}-byte elements: the device must place memory by pages"
                raise DeviceError(text.format(relocation["buffer"], relocation["element_bytes"]))
            field = (words[chosen, 0] >> bit) & _MASK
            words[chosen, 0] = (words[chosen, 0] & ~(_MASK << bit)) | (((field + np.uint64(base)) & _MASK) << bit)
        buffer = self._allocate(words.nbytes)
        buffer[: words.nbytes] = words.reshape(-1).view(np.uint8)
        buffer.flush()
        return buffer

    # --- steps ---

    def _pack(self, step: Dict[str, Any], values: Dict[str, Any]) -> None:
        packed, data = self._packed[step["buffer"]], values[step["tensor"]]
        if data.dtype != np.int8:
            raise TypeError("VTA takes int8, the tensor is {}".format(data.dtype))
        if "channels_last" in step:
            data = channels_first(data)
        if "fold" in step:
            fold(data, packed, **step["fold"])
        else:
            pack(data, packed)
        self._views[step["buffer"]].flush()

    def _unpack(self, step: Dict[str, Any], values: Dict[str, Any]) -> None:
        self._read_back(step["buffer"])
        values[step["tensor"]] = unpack(self._packed[step["buffer"]], step["shape"])

    def _vta(self, step: Dict[str, Any], values: Dict[str, Any]) -> Any:
        program = self.bundle.manifest["programs"][step["program"]]
        limit = program["limit_seconds"]
        expected = min(program["cycles"] / self.bundle.manifest["target"]["clock_hz"], limit)
        with self._turn:
            run = self.device.run(self.programs[step["program"]], program["count"], limit, expected)
        if run.outcome != "ok":
            text = "VTA did not finish {}: {}; the network was compiled for {:.3g} ms of it"
            raise InferenceError(text.format(step["name"], run.reason or run.outcome, expected * 1e3), run.outcome)
        return run

    def _cpu(self, step: Dict[str, Any], values: Dict[str, Any]) -> None:
        if "packed" in step:
            self._cpu_packed(step, values)
        else:
            inputs = [values[name] if name else None for name in step["inputs"]]
            values.update(zip(step["outputs"], self._compute(step, inputs)))

    def _cpu_packed(self, step: Dict[str, Any], values: Mapping[str, Any]) -> None:
        """Compute a step on VTA's buffers."""
        buffers, output = step["packed"], step["outputs"][0]
        for name in step["inputs"]:
            if name in buffers:
                self._read_back(buffers[name])
        self._compute_packed(step, values)
        self._views[buffers[output]].flush()

    def _compute_packed(self, step: Dict[str, Any], values: Mapping[str, Any]) -> None:
        buffers = step["packed"]
        inputs = [
            self._packed[buffers[name]] if name in buffers else values[name] if name else None
            for name in step["inputs"]
        ]
        target = self._packed[buffers[step["outputs"][0]]]
        made = self._compute(step, inputs)[0]
        if made.shape != target.shape or made.dtype != target.dtype:
            raise ValueError("it makes {} {}, its buffer holds {}".format(made.dtype, made.shape, target.shape))
        target[...] = made

    def _compute(self, step: Dict[str, Any], inputs: Sequence[Any]) -> List[Any]:
        try:
            outputs = operators.run(step["op"], inputs, step["attributes"])
            if len(outputs) < len(step["outputs"]):
                raise ValueError("it makes {} tensors, not {}".format(len(outputs), len(step["outputs"])))
            return outputs
        except Exception as error:
            text = "step {} ({}) cannot be computed with these inputs: {}"
            raise StepError(text.format(step["name"], step["op"], str(error) or type(error).__name__)) from error

    # --- the same steps, planned for the native engine as they run for the first time ---

    def _plan_pack(self, step: Dict[str, Any], plan: InferencePlan) -> None:
        try:
            plan.add_pack(step)
            self._dirty.append(self._views[step["buffer"]])
        except NotNativeError as error:
            plan.reasons[step["name"]] = str(error)
            plan.add_call(lambda: self._pack(step, plan.values))

    def _plan_unpack(self, step: Dict[str, Any], plan: InferencePlan) -> None:
        self._read_back(step["buffer"])
        self._reads.append(self._views[step["buffer"]])
        if any(step is each for each in self._in_place):
            plan.add_view(step)
            return
        try:
            plan.add_unpack(step)
        except NotNativeError as error:
            packed = self._packed[step["buffer"]]
            plan.add_numpy(step, [step["tensor"]], lambda: [unpack(packed, step["shape"])], str(error))

    def _plan_vta(self, step: Dict[str, Any], plan: InferencePlan) -> Any:
        written, self._dirty = self._dirty, []
        reads = self._reads = []

        def call() -> Any:
            for view in written:
                view.flush()
            run = self._vta(step, {})
            for view in reads:  # see _read_back
                view.flush()
                view.invalidate()
            return run

        return plan.add_call(call)

    def _plan_cpu(self, step: Dict[str, Any], plan: InferencePlan) -> None:
        if "packed" in step:
            self._plan_packed(step, plan)
        else:
            plan.add_operator(step, lambda inputs: self._compute(step, inputs))

    def _plan_packed(self, step: Dict[str, Any], plan: InferencePlan) -> None:
        buffers = step["packed"]
        for name in step["inputs"]:
            if name in buffers and not any(self._views[buffers[name]] is view for view in self._dirty):
                self._read_back(buffers[name])
                self._reads.append(self._views[buffers[name]])
        try:
            plan.add_packed(step)
        except NotNativeError as error:
            plan.reasons[step["name"]] = str(error)
            plan.add_call(lambda: self._compute_packed(step, plan.values))
        self._dirty.append(self._views[buffers[step["outputs"][0]]])

    def _read_back(self, buffer: str) -> None:
        # Behind a coherent port VTA's output may still be in the processor's cache: written to memory first.
        self._views[buffer].flush()
        self._views[buffer].invalidate()

    # --- values ---

    def _checked(self, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        if len(inputs) == len(self._wanted) and all(_is(inputs.get(name), *facts) for name, *facts in self._wanted):
            return inputs
        checked = {}
        for wanted in self.bundle.inputs:
            name = wanted["name"]
            if name not in inputs:
                raise InputError("the network's input {} was not given".format(name))
            array = np.asarray(inputs[name])
            if list(array.shape) != list(wanted["shape"]) or array.dtype != np.dtype(wanted["dtype"]):
                text = "input {} is {} {}, the network takes {} {}: convert it, or compile the network for it"
                shapes = (array.dtype, tuple(array.shape), wanted["dtype"], tuple(wanted["shape"]))
                raise InputError(text.format(name, *shapes))
            checked[name] = array
        unknown = sorted(set(inputs) - {each["name"] for each in self.bundle.inputs})
        if unknown:
            raise InputError("the network has no input {}; it has {}".format(unknown[0], sorted(checked)))
        return checked

    def _all(self, values: Dict[str, Any]) -> Dict[str, Any]:
        """Return every tensor of the network: those of the processor, and those in VTA's memory."""
        tensors = {name: np.array(value) for name, value in values.items() if name and name not in self._own}
        for name, facts in self.bundle.manifest["packed"].items():
            if name not in tensors:
                self._read_back(facts["buffer"])
                tensors[name] = unpack(self._packed[facts["buffer"]], facts["shape"])
        return tensors


_STEPS: Dict[str, Any] = {
    "pack": PlacedNetwork._pack,
    "unpack": PlacedNetwork._unpack,
    "vta": PlacedNetwork._vta,
    "cpu": PlacedNetwork._cpu,
}
_PLANNED: Dict[str, Any] = {
    "pack": PlacedNetwork._plan_pack,
    "unpack": PlacedNetwork._plan_unpack,
    "vta": PlacedNetwork._plan_vta,
    "cpu": PlacedNetwork._plan_cpu,
}


def _run_of(step: Mapping[str, Any], began: float, ended: float, run: Any) -> StepRun:
    device_seconds, cycles = (run.seconds, run.cycles) if run is not None else (0.0, None)
    return StepRun(step["kind"], step["name"], began, ended, device_seconds, cycles)


def _is(array: Any, shape: Any, dtype: Any) -> bool:
    return type(array) is np.ndarray and array.shape == shape and array.dtype == dtype
