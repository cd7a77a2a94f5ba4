"""VTA's name for a parameter set holds all of it."""

import pytest

from hilt.vta.parameters import ParameterError, VTAParameters, load_parameters


@pytest.mark.parametrize("name", ["pynq", "pynq_batched", "ultra96", "zcu104", "zcu102"])
def test_from_name_is_the_inverse_of_name(name: str) -> None:
    parameters = load_parameters(name)
    assert VTAParameters.from_name(parameters.name) == parameters


BAD = ["", "1x16", "1x16_i8w8a32_15_15_18_17_", "1x12_i8w8a32_15_15_18_17", "1x16_i4w8a32_1_1_1_1"]


@pytest.mark.parametrize("name", BAD)
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(ParameterError):
        VTAParameters.from_name(name)
