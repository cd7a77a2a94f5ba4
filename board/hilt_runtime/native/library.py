"""The engine's shared library: sent with the agent for this processor, else compiled here, once for its sources.

HILT_ENGINE=numpy in the environment leaves it out; HILT_ENGINE_THREADS=1 keeps it to one core.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import pkgutil
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from hilt_runtime.native.steps import KERNELS

VARIABLE = "HILT_ENGINE"
THREADS = "HILT_ENGINE_THREADS"
MOST_THREADS = 4
SENT = "libhilt-{}.so"
"""The library that is sent with the runtime, for a processor of MACHINES."""
SOURCES = (
    *("engine.c", "threads.c", "device.c", "move.c", "integer.c", "float.c", "recurrent.c"),
    *("fixed_matmul.c", "border.c", "softmax.c", "look_up.c", "norm.c", "integer_norm.c", "interpolate.c", "pool.c"),
    *("engine.h", "fixed_point.h", "functions.h", "integer.h", "lines.h", "products.h", "sums.h", "vector.h", "vfp.h"),
)
FLAGS = (
    *("-std=gnu11", "-O3", "-fPIC", "-shared", "-pthread", "-fvisibility=hidden", "-fwrapv", "-s"),
    *("-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"),
)
"""No flag may let the compiler change the value of a float: products and sums are not fused."""
MACHINES = {"armv7l": "armv7l", "armv8l": "armv7l", "aarch64": "aarch64", "arm64": "aarch64", "x86_64": "x86_64"}
"""A processor's name, as the kernel says it, and the library that runs there."""
_ABI = 15
_COMPILE_SECONDS = 600
_COSTS = "every step of the processor takes ten to fifty times as long"


class Engine(NamedTuple):
    """The library if there is one, one line that says which engine runs and why, and the threads of a large step."""

    library: Optional[Any]
    reason: str
    threads: int = 1


_CHOSEN: Dict[str, Engine] = {}


def engine() -> Engine:
    """Return the engine of this process: native where a library can be had, else numpy. HILT_ENGINE says which."""
    wanted = os.environ.get(VARIABLE, "")
    if wanted not in _CHOSEN:
        _CHOSEN[wanted] = _chosen(wanted)
    return _CHOSEN[wanted]


def _chosen(wanted: str) -> Engine:
    if wanted == "numpy":
        return Engine(None, "numpy: {}=numpy is set".format(VARIABLE))
    if wanted not in ("", "native"):
        return Engine(None, "numpy: {} is {!r}; give numpy or native".format(VARIABLE, wanted))
    reasons: List[str] = []
    for find in (_sent, _compiled):
        try:
            path, reason = find()
            return Engine(_loaded(path), "native: " + reason, threads())
        except (OSError, LookupError, RuntimeError, ValueError, subprocess.SubprocessError) as error:
            reasons.append(str(error))
    return Engine(None, "numpy: {}; {}".format("; ".join(reasons), _COSTS))


def threads() -> int:
    """Return how many threads run the pieces of a large step: this process's cores, at most MOST_THREADS.

    HILT_ENGINE_THREADS says fewer or more. Raises ValueError if that is no number from 1 to 16.
    """
    wanted = os.environ.get(THREADS, "")
    if not wanted:
        return min(len(os.sched_getaffinity(0)), MOST_THREADS)
    if not wanted.isdecimal() or not 1 <= int(wanted) <= 16:
        raise ValueError("{} is {!r}; give a number from 1 to 16".format(THREADS, wanted))
    return int(wanted)


def source_digest() -> str:
    """Return the SHA-256 of the engine's sources and flags."""
    digest = hashlib.sha256("\0".join(FLAGS).encode())
    for name in SOURCES:
        digest.update(name.encode() + b"\0" + _resource(name))
    return digest.hexdigest()


def _resource(name: str) -> bytes:
    data = pkgutil.get_data("hilt_runtime.native", name)
    if data is None:
        raise LookupError("the engine's source {} is missing".format(name))
    return data


def _sent() -> Tuple[Path, str]:
    """Return the library that came with the package, in a file that the loader can read. Raises OSError."""
    machine = MACHINES.get(platform.machine(), platform.machine())
    if machine == "aarch64" and ctypes.sizeof(ctypes.c_void_p) == 4:
        machine = "armv7l"  # a 32-bit system on a 64-bit processor
    try:
        data = _resource(SENT.format(machine))
    except (OSError, LookupError):
        raise LookupError("no library for {} came with the runtime".format(machine)) from None
    path = _folder() / "{}.so".format(hashlib.sha256(data).hexdigest())
    if not path.is_file() or path.read_bytes() != data:
        _put(path, data)
    return path, "the library that was sent for {}".format(machine)


def _compiled() -> Tuple[Path, str]:
    """Return the library as this computer's compiler makes it. Raises LookupError, OSError, SubprocessError."""
    compiler = next((found for found in map(shutil.which, ("gcc", "cc", "clang")) if found), None)
    if compiler is None:
        raise LookupError("no gcc, cc or clang on this computer")
    command = [compiler, *FLAGS, *_processor_flags()]
    key = hashlib.sha256("\0".join([source_digest(), platform.node(), *command]).encode()).hexdigest()
    path = _folder() / "built-{}.so".format(key)
    if not path.is_file():
        with tempfile.TemporaryDirectory(dir=str(path.parent)) as work:
            for name in SOURCES:
                (Path(work) / name).write_bytes(_resource(name))
            made = Path(work) / "libhilt.so"
            units = [str(Path(work) / name) for name in SOURCES if name.endswith(".c")]
            done = subprocess.run(
                [*command, *units, "-o", str(made), "-lm"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=_COMPILE_SECONDS,
                check=False,
            )
            if done.returncode:
                text = done.stdout.decode("utf-8", "replace").strip().splitlines()[-1:]
                raise LookupError("{} does not compile the engine: {}".format(compiler, " ".join(text)))
            made.replace(path)
    return path, "compiled here by {}".format(Path(compiler).name)


def _processor_flags() -> List[str]:
    if MACHINES.get(platform.machine()) == "armv7l":
        return ["-mcpu=cortex-a9", "-mfpu=neon", "-mfloat-abi=hard"]
    return ["-mcpu=native"] if MACHINES.get(platform.machine()) == "aarch64" else ["-march=native"]


def _folder() -> Path:
    """Return the folder of libraries: below HILT_CACHE, else below the user's cache. Raises OSError."""
    base = os.environ.get("HILT_CACHE") or str(Path.home() / ".cache" / "hilt")
    folder = Path(base) / "native"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.stat()
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise OSError("{} can be written by others: no library is loaded from it".format(folder))
    return folder


def _put(path: Path, data: bytes) -> None:
    with tempfile.NamedTemporaryFile(dir=str(path.parent), delete=False) as file:
        file.write(data)
    Path(file.name).replace(path)


def _loaded(path: Path) -> Any:
    """Return the library in a file. Raises OSError if it cannot be loaded, or is of another version."""
    library = ctypes.CDLL(str(path))
    if not _is_ours(library):
        raise OSError("{} is of another version".format(path))
    pointer, size = ctypes.c_void_p, ctypes.c_int64
    library.hilt_check.argtypes, library.hilt_check.restype = [pointer, size, pointer, size], size
    library.hilt_run.argtypes, library.hilt_run.restype = [pointer, size, size, pointer, pointer], size
    word, real = ctypes.c_int32, ctypes.c_double
    library.hilt_threads.argtypes, library.hilt_threads.restype = [word, word], None
    unsigned = ctypes.c_uint32
    library.hilt_start.argtypes = [pointer, pointer, word, unsigned, unsigned, real, pointer]
    library.hilt_start.restype = real
    library.hilt_poll.argtypes = [pointer, pointer, word, real, pointer, pointer, pointer]
    library.hilt_poll.restype = word
    return library


def _is_ours(library: Any) -> bool:
    """Tell whether a library has this version's calls and kernels."""
    if not hasattr(library, "hilt_abi") or library.hilt_abi() != _ABI:
        return False
    return bool(library.hilt_kernel_count() == len(KERNELS))
