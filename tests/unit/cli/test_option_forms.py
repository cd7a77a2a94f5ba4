"""Words of a command line that stand for a configuration, a shape, a number or a file to write."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import typer

from hilt.atomic_write import UnwritableFileError
from hilt.cli.configuration import configuration_of, memory_of_board
from hilt.cli.files import check_folder, output_folder, replaceable
from hilt.cli.input_options import OptionFormError, read_shapes, read_values
from hilt.schedule import load_workload, space_for
from hilt.simulator.device import MemoryModel
from hilt.vta.accelerator import Accelerator
from hilt.vta.parameters import load_parameters

SPACE = space_for(load_workload("resnet18.C5"), Accelerator.for_parameters(load_parameters("pynq")), orders=4)
KNOBS = {name: value for name, value in SPACE.knobs_at(9).items() if name not in ("tile_b", "loop_order")}
WORDS = [f"{name}={value}" for name, value in KNOBS.items()]


def test_an_index_is_a_configuration_and_so_are_knobs_in_any_order() -> None:
    assert configuration_of(["891"], SPACE) == 891
    expected = {"tile_b": 1, "loop_order": 1, **KNOBS}
    assert configuration_of(WORDS, SPACE) == expected == configuration_of([",".join(reversed(WORDS))], SPACE)
    assert configuration_of([*WORDS, "loop_order=2"], SPACE) == {**expected, "loop_order": 2}
    assert configuration_of(["tile_b=1", *WORDS], SPACE) == expected


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["9" * 18], None),
        (["9" * 19], "is neither an index nor KNOB=NUMBER; `hilt space` lists the knobs"),
        (["-1"], "'-1' is neither an index nor"),
        (["1", "2"], "'1' is neither an index nor"),
        (["tile_h"], "'tile_h' is neither"),
        (["tile_h=x"], "'tile_h=x' is neither"),
        (["x" * 41], f"'{'x' * 40}...' is neither"),
        (["x" * 40], f"'{'x' * 40}' is neither"),
        (["tile_z=1"], "no knob is called 'tile_z'; this space has tile_b, "),
        ([*WORDS, WORDS[0]], f"{WORDS[0].partition('=')[0]} is given twice"),
        (WORDS[1:], f"a configuration needs {WORDS[0].partition('=')[0]} too; `hilt space` lists their values"),
        ([], "a configuration needs "),
    ],
)
def test_what_is_no_configuration_is_named(words: list[str], message: str | None) -> None:
    if message is None:
        assert configuration_of(words, SPACE) == int(words[0]), "the explanation is of the space"
        return
    with pytest.raises(typer.BadParameter) as caught:
        configuration_of(words, SPACE)
    assert message in caught.value.message


def test_a_real_board_has_the_usual_memory_and_a_virtual_one_its_own() -> None:
    assert memory_of_board("desk") == MemoryModel()
    assert memory_of_board("virtual:ultra96") != MemoryModel()


def test_shapes_and_numbers_of_inputs_by_name() -> None:
    assert read_shapes(["x=1,3,224,224", "a=b=2x4", "s= 1 , 2"]) == {"x": (1, 3, 224, 224), "a=b": (2, 4), "s": (1, 2)}
    assert read_values(["rate=16000", "a=b=-0.5"]) == {"rate": 16000.0, "a=b": -0.5}
    assert read_shapes(None) == {} == read_values(None)


@pytest.mark.parametrize("text", ["", "1,2", "=1,2", "x=", "x=1,", "x=1,-2", "x=1.5", "x=1,n"])
def test_what_is_no_shape_is_named_with_the_form_of_one(text: str) -> None:
    with pytest.raises(OptionFormError) as caught:
        read_shapes(["y=1", text])
    assert str(caught.value) == f"--shape {text} is no shape; write it as --shape input=1,3,224,224"


@pytest.mark.parametrize("text", ["", "1", "=1", "x=", "x=1,2", "x=much"])
def test_what_is_no_number_is_named_with_the_form_of_one(text: str) -> None:
    with pytest.raises(OptionFormError) as caught:
        read_values([text])
    assert str(caught.value) == f"--value {text} is no number; write it as --value rate=16000"


def test_a_file_that_cannot_be_written_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_folder(tmp_path / "new")
    for path, why in ((tmp_path, "it is a folder"), (tmp_path / "no" / "new", "its folder is missing")):
        with pytest.raises(UnwritableFileError, match=why):
            check_folder(path)
    monkeypatch.setattr(os, "access", lambda path, how: how != os.W_OK | os.X_OK)
    with pytest.raises(UnwritableFileError, match="its folder is not yours to write in"):
        check_folder(tmp_path / "new")
    with pytest.raises(UnwritableFileError, match=f"cannot write in {tmp_path}: Permission denied"):
        output_folder(tmp_path)


def test_a_folder_is_made_with_those_above_it(tmp_path: Path) -> None:
    made = tmp_path / "a" / "b"
    assert output_folder(made) == made and made.is_dir() and output_folder(made) == made
    (tmp_path / "file").touch()
    with pytest.raises(UnwritableFileError, match="cannot make the folder .*: "):
        output_folder(tmp_path / "file" / "b")


def test_what_is_replaced_is_the_file_at_the_end_of_the_links(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("file")
    assert replaceable(tmp_path / "link") == tmp_path / "file" == replaceable(tmp_path / "file")
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(UnwritableFileError, match="it is no ordinary file"):
            replaceable(path)
    with pytest.raises(UnwritableFileError, match="File name too long"):
        replaceable(tmp_path / ("x" * 300))
