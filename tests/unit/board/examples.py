"""Messages of every kind, and strategies that make them."""

from __future__ import annotations

import dataclasses

from hypothesis import strategies as st

from hilt_board.protocol import (
    Acknowledge,
    Acknowledged,
    AgentFailure,
    AgentHello,
    AgentStatus,
    Beat,
    BitstreamLoaded,
    BlobStored,
    HasBlobs,
    Identity,
    Input,
    Limits,
    LoadBitstream,
    Log,
    LogText,
    Manifest,
    Measure,
    Measured,
    MissingBlobs,
    NetworkRan,
    Output,
    Ready,
    Record,
    Relocation,
    Reset,
    ResetDone,
    Results,
    ResultsReport,
    RunNetwork,
    Shutdown,
    ShuttingDown,
    StatusReport,
    StopNetwork,
    TrialRequest,
    UploadBlob,
    Welcome,
    WireVerification,
)

DIGEST = "5e" * 32
TRIAL = TrialRequest(
    key="7f9c-run/12/1",
    bitstream=DIGEST,
    instructions=2,
    instruction_bytes=16,
    uops=3,
    uop_bytes=4,
    inputs=(Input("data", "inp", DIGEST, 64, 16), Input("bias", "acc", DIGEST, 128, 64)),
    output=Output("out", 32, 16, DIGEST, "int8"),
    relocations=(Relocation("uop", 1), Relocation("out", 1)),
    dram_base_bit=25,
    limit_seconds=0.5,
    number=2,
    repeat=3,
)
CODE = bytes(range(2 * 16 + 3 * 4 + 2 * 4))
MANIFEST = Manifest("pynq", "7z020clg400", "1x16_i8w8a32_15_15_18_17", "A", 10**8, 0x43C00000, Identity(1, 2, 3, 4))
MEASURED = Measured(
    key="run/1/0",
    outcome="wrong_answer",
    reason="2 of 32 items differ",
    sequence=9,
    verification=WireVerification(32, 2, 7, 255),
    canary=True,
    seconds={"run": 0.25},
)
MESSAGES: tuple[Record, ...] = (
    AgentHello("host of someone"),
    Welcome("", "boot", "Pynq-Z2", "3.8.2", "2.7.0", "1.21", DIGEST, 10**8, 1.0, 4, Limits(1 << 30, 1 << 20, 256)),
    AgentFailure("blob_missing", "put it first"),
    HasBlobs((DIGEST,)),
    MissingBlobs(()),
    UploadBlob(DIGEST, 10, 4, b"chunk"),
    BlobStored(DIGEST, 9, False),
    LoadBitstream(DIGEST, MANIFEST),
    LoadBitstream(DIGEST, MANIFEST, TRIAL, CODE),
    BitstreamLoaded(DIGEST, 10**8, 1.5),
    Measure(TRIAL, CODE),
    MEASURED,
    RunNetwork(DIGEST, "model.hilt", 1.5, 2, 3, True, b"arrays"),
    NetworkRan("timeout", "no FINISH", True, b"arrays"),
    Results(3),
    ResultsReport((MEASURED,), True),
    Acknowledge(4, "7f9c-run"),
    Acknowledged(4),
    AgentStatus(),
    StatusReport("ready", None, DIGEST, 4711, 1, 2, 3, "", 1 << 40, 12.5, 41.5),
    Reset("reload"),
    ResetDone("reload", True, 0.5),
    Log(1000),
    LogText("grüße".encode()),
    Shutdown(),
    ShuttingDown(),
    Ready("Pynq-Z2", "3.8.2", "2.7.0", "1.21", 1.0),
    Beat(),
    StopNetwork(),
)

results = st.builds(
    lambda number, outcome, reason, cycles, seconds: Measured(
        key=f"run/{number}/0",
        outcome=outcome,
        reason=reason,
        cycles=tuple(cycles),
        microseconds=tuple(each / 100 for each in cycles),
        seconds={"run": seconds},
    ),
    st.integers(1, 10**6),
    st.sampled_from(["ok", "wrong_answer", "timeout", "crash", "bus_error"]),
    st.text(st.characters(codec="utf-8"), max_size=50),
    st.lists(st.floats(0, 1e12), max_size=4),
    st.floats(0, 1e6),
)
"""Measured of trials that may have the same key."""


def without(message: Record, name: str) -> dict[str, object]:
    """A message's fields but one."""
    return {field: value for field, value in message.to_fields().items() if field != name}


def field_names(message: Record) -> list[str]:
    return [each.name for each in dataclasses.fields(message) if each.metadata.get("on_wire", True)]  # type: ignore[arg-type]
