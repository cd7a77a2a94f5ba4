"""The smallest and largest value of each field of a message, and the first one past each: old agents hold the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import pytest

from hilt_board.protocol import (
    AgentFailure,
    AgentHello,
    Identity,
    Input,
    Limits,
    LoadBitstream,
    Log,
    Manifest,
    Measured,
    MessageError,
    NetworkRan,
    Output,
    Record,
    Relocation,
    ResultsReport,
    RunNetwork,
    StatusReport,
    TrialRequest,
    UploadBlob,
    Welcome,
    WireVerification,
)
from hilt_board.protocol.messages import MESSAGES as KINDS
from tests.unit.board.examples import DIGEST, MESSAGES, TRIAL

NAME, SHORT, LONG, REASON = 64, 64, 200, 4096
"""Characters: of names, of versions and identities, of clients and files, of reasons."""
MOST = 2**53 - 1
"""The largest count: JSON's numbers are exact up to it."""
WORD, CLOCK, BLOB, SECONDS = 2**32 - 1, 10**10, 2**30, 1e9

TEXTS = {
    AgentHello: {"client": LONG},
    Welcome: {"agent": SHORT, "boot_id": SHORT, "device": SHORT, "python": SHORT, "pynq": SHORT, "numpy": SHORT},
    AgentFailure: {"message": REASON},
    RunNetwork: {"name": LONG},
    NetworkRan: {"reason": REASON},
    Measured: {"reason": REASON},
    StatusReport: {"holder": LONG, "agent": SHORT},
    KINDS["acknowledge"]: {"run": LONG},
    KINDS["ready"]: {"device": SHORT, "python": SHORT, "pynq": SHORT, "numpy": SHORT},
}
NUMBERS = {
    Limits: {"blob_bytes": (0, BLOB), "chunk_bytes": (0, BLOB), "pending": (1, 2**20)},
    Welcome: {"clock_hz": (1, CLOCK), "time_scale": (1.0, 1e9), "journal_next": (0, MOST)},
    KINDS["blob_stored"]: {"received": (0, BLOB)},
    KINDS["bitstream_loaded"]: {"clock_hz": (1, CLOCK), "seconds": (0.0, SECONDS)},
    RunNetwork: {"limit_seconds": (0.0, SECONDS), "images": (1, 2**16), "repeat": (1, 2**16)},
    KINDS["results"]: {"since": (0, MOST)},
    KINDS["acknowledge"]: {"through": (0, MOST)},
    KINDS["acknowledged"]: {"through": (0, MOST)},
    StatusReport: {
        **dict.fromkeys(("worker", "worker_restarts", "trials", "unacknowledged", "free_bytes"), (0, MOST)),
        **{"uptime_seconds": (0.0, SECONDS), "temperature": (-273.15, 1000.0)},
    },
    KINDS["reset_done"]: {"seconds": (0.0, SECONDS)},
    Log: {"bytes": (1, 2**20)},
    KINDS["ready"]: {"time_scale": (1.0, 1e9)},
    Identity: dict.fromkeys(("version", "geometry", "buffer_sizes", "build"), (0, WORD)),
    Manifest: {"clock_hz": (1, CLOCK), "register_base": (0, 2**48 - 1), "fclk_hz": (1, CLOCK)},
    Input: {"bytes": (1, BLOB), "element_bytes": (1, 2**16)},
    Output: {"bytes": (1, BLOB), "element_bytes": (1, 2**16)},
    Relocation: {"count": (0, 2**24)},
    TrialRequest: {
        **{"instructions": (1, 2**21), "uops": (0, 2**23), "dram_base_bit": (0, 32)},
        **{"limit_seconds": (1e-6, 3600.0), "number": (1, 1000), "repeat": (1, 1000)},
    },
    WireVerification: dict.fromkeys(("compared", "mismatched", "first", "largest_error"), (0, MOST)),
    Measured: {"sequence": (0, MOST), "worker_restarts": (0, MOST)},
}
LISTS: dict[type[Record], dict[str, tuple[int, Any]]] = {
    KINDS["has_blobs"]: {"sha256": (4096, DIGEST)},
    KINDS["missing_blobs"]: {"sha256": (4096, DIGEST)},
    ResultsReport: {"results": (128, Measured("run/1/0", "ok"))},
    Measured: {"cycles": (1000, 1.0), "microseconds": (1000, 1.0), "wall_microseconds": (1000, 1.0)},
    TrialRequest: {"relocations": (32, Relocation("uop", 0))},
}


def inner(record: object) -> Iterator[Record]:
    """Yield a record and all records within it."""
    if isinstance(record, Record):
        yield record
        for field in fields(record):  # type: ignore[arg-type]
            yield from inner(getattr(record, field.name))
    elif isinstance(record, tuple):
        for each in record:
            yield from inner(each)


EXAMPLES = {type(record): record for message in MESSAGES for record in inner(message)}


def rows(table: dict[Any, dict[str, Any]]) -> list[Any]:
    return [
        pytest.param(kind, name, limit, id=f"{kind.__name__}.{name}")
        for kind, of_kind in table.items()
        for name, limit in of_kind.items()
    ]


def changed(kind: type[Record], name: str, value: object) -> object:
    """Return the field after it was set, as a message holds it."""
    return getattr(replace(EXAMPLES[kind], **{name: value}), name)  # type: ignore[type-var]


def next_to(number: float, step: int) -> float:
    return number + step if isinstance(number, int) else number + step * max(1e-9, abs(number) * 1e-9)


@pytest.mark.parametrize(("kind", "name", "most"), rows(TEXTS))
def test_a_text_has_so_many_characters_at_most(kind: type[Record], name: str, most: int) -> None:
    for text in ("", "ü" * most):
        assert changed(kind, name, text) == text
    with pytest.raises(MessageError, match=rf"{name}: text of at most {most} characters"):
        changed(kind, name, "x" * (most + 1))


@pytest.mark.parametrize(("kind", "name", "limits"), rows(NUMBERS))
def test_a_number_lies_within_its_limits(kind: type[Record], name: str, limits: tuple[float, float]) -> None:
    low, high = limits
    for value in limits:
        assert changed(kind, name, value) == value
    for value in (next_to(low, -1), next_to(high, 1), True, "1"):
        with pytest.raises(MessageError, match=name):
            changed(kind, name, value)


@pytest.mark.parametrize(("kind", "name", "limit"), rows(LISTS))
def test_a_list_has_so_many_items_at_most(kind: type[Record], name: str, limit: tuple[int, Any]) -> None:
    most, item = limit
    assert changed(kind, name, (item,) * most) == (item,) * most
    with pytest.raises(MessageError, match=f"{name}: a list of at most {most} is needed"):
        changed(kind, name, (item,) * (most + 1))


@pytest.mark.parametrize(
    ("kind", "name"), [(Manifest, "board"), (Manifest, "part"), (Manifest, "parameters"), (Output, "name")]
)
def test_a_name_has_64_characters_at_most(kind: type[Record], name: str) -> None:
    assert changed(kind, name, "a" * NAME) == "a" * NAME
    for text in ("", "a" * (NAME + 1), "a b", "a\n"):
        with pytest.raises(MessageError, match="a name of 1 to 64 letters"):
            changed(kind, name, text)


def test_a_trial_has_16_inputs_at_most_and_each_a_name_of_its_own() -> None:
    def tensors(count: int) -> tuple[Input, ...]:
        return tuple(Input(f"in{number}", "inp", DIGEST, 64, 16) for number in range(count))

    assert len(replace(TRIAL, inputs=tensors(16)).inputs) == 16
    with pytest.raises(MessageError, match="inputs: a list of at most 16"):
        replace(TRIAL, inputs=tensors(17))
    for inputs in (tensors(1) * 2, (replace(tensors(1)[0], name="uop"),), (replace(tensors(1)[0], name="out"),)):
        with pytest.raises(MessageError, match="names must differ"):
            replace(TRIAL, inputs=inputs)
    with pytest.raises(MessageError, match="no buffer 'gone'"):
        replace(TRIAL, relocations=(Relocation("gone", 1),))


@pytest.mark.parametrize(
    "code",
    [
        {"instructions": 2**21, "instruction_bytes": 16},
        {"instructions": 2**20, "instruction_bytes": 32},
        {"uops": 2**23, "uop_bytes": 4},
        {"uops": 2**22, "uop_bytes": 8},
    ],
)
def test_code_has_32_mebibytes_a_buffer_at_most(code: dict[str, int]) -> None:
    assert replace(TRIAL, **code).code_bytes >= 2**25  # type: ignore[arg-type]
    name = next(iter(code))
    with pytest.raises(MessageError, match=f"{name}|at most 33554432 bytes of code a buffer"):
        replace(TRIAL, **{**code, name: code[name] + 1})  # type: ignore[arg-type]


def test_code_is_instructions_micro_ops_and_indices() -> None:
    assert TRIAL.code_bytes == 2 * 16 + 3 * 4 + 4 * 2
    TRIAL.check_code(bytes(52))
    for count in (51, 53, 0):
        with pytest.raises(MessageError, match=f"code of {count} bytes, the trial says 52"):
            TRIAL.check_code(bytes(count))


def test_a_canary_comes_with_its_code_and_code_with_its_canary() -> None:
    code = bytes(TRIAL.code_bytes)
    manifest = EXAMPLES[Manifest]
    assert LoadBitstream(DIGEST, manifest, TRIAL, code).code == code  # type: ignore[arg-type]
    assert LoadBitstream(DIGEST, manifest).code == b""  # type: ignore[arg-type]
    for wrong in (b"", code[:-1], code + b"x"):
        with pytest.raises(MessageError, match=f"code of {len(wrong)} bytes, the trial says {len(code)}"):
            LoadBitstream(DIGEST, manifest, TRIAL, wrong)  # type: ignore[arg-type]
    with pytest.raises(MessageError, match="LoadBitstream.code: code without a canary"):
        LoadBitstream(DIGEST, manifest, None, code)  # type: ignore[arg-type]


def test_a_chunk_ends_within_its_blob() -> None:
    assert UploadBlob(DIGEST, BLOB, BLOB - 5, b"chunk").offset == BLOB - 5
    assert UploadBlob(DIGEST, 0, 0).chunk == b""
    for total, offset in ((5, 1), (4, 0), (BLOB + 1, 0), (5, -1)):
        with pytest.raises(MessageError, match="chunk: ends at|integer from 0 to 1073741824"):
            UploadBlob(DIGEST, total, offset, b"chunk")


def test_seconds_have_16_names_at_most() -> None:
    seconds = {f"step{number}": 1e9 for number in range(16)}
    assert changed(Measured, "seconds", seconds) == seconds
    for wrong in ({**seconds, "more": 0.0}, {"a b": 0.0}, {"a": -1.0}, {"a": 2e9}):
        with pytest.raises(MessageError, match="seconds"):
            changed(Measured, "seconds", wrong)
