"""The canary's numbers, worked out again element by element, for every kind of parameter set."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from hilt.measure.canary import make_canary
from hilt.vta.accelerator import Accelerator, load_parameters
from hilt.vta.isa import decode


@pytest.mark.parametrize("name", ["pynq", "pynq_batched", "zcu102"])
def test_it_is_a_whole_trial_whose_numbers_are_known(name: str) -> None:
    accelerator = Accelerator.for_parameters(load_parameters(name))
    canary = make_canary(accelerator, "0" * 64)
    canary.trial.check_code(canary.code)
    assert all(hashlib.sha256(blob).hexdigest() == digest for digest, blob in canary.blobs.items())
    tensors = {each.name: canary.blobs[each.sha256] for each in canary.trial.inputs}
    batch, block = accelerator.parameters.batch, accelerator.parameters.block
    inp = np.frombuffer(tensors["inp"], np.int8).reshape(-1, batch, block).astype(int)
    wgt = np.frombuffer(tensors["wgt"], np.int8).reshape(block, block).astype(int)
    acc = np.frombuffer(tensors["acc"], np.int32).reshape(-1, batch, block).astype(int)
    expected = np.frombuffer(canary.blobs[canary.trial.output.expected], np.int8).reshape(-1, batch, block)
    for element, row, lane in ((0, 0, 0), (7, batch - 1, block - 1), (3, 0, 5)):
        total = acc[element, row, lane] + sum(inp[element, row, k] * wgt[lane, k] for k in range(block)) + 5
        assert (int(total) + 128) % 256 - 128 == expected[element, row, lane]
    words = np.frombuffer(canary.code[: canary.trial.instructions * canary.trial.instruction_bytes], "<u8")
    instructions = decode(words.reshape(canary.trial.instructions, -1), accelerator)
    assert instructions["opcode"].tolist() == [0, 0, 0, 0, 2, 4, 1, 3]
