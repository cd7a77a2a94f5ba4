"""Tuners from outside: from a file and from an installed package, with their options and their source's digest."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilt import tune
from hilt.tune import plugins
from hilt.tune.registry import _TUNERS

SOURCE = '''
from dataclasses import dataclass

@dataclass(frozen=True)
class Options:
    step: int = 3
    """Indices between two questions."""

class Stepping:
    """Every third configuration."""

    def __init__(self, problem, seed, options: Options) -> None:
        self._next, self._step = seed, options.step

    def ask(self, count):
        asked = [self._next + self._step * place for place in range(count)]
        self._next += self._step * count
        return asked

    def tell(self, feedback):
        pass

class Other:
    pass
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "stepping.py"
    path.write_text(SOURCE)
    plugins._from_file.cache_clear()
    return path


def test_a_file_gives_a_tuner_with_options_and_help(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    name = tune.canonical_tuner("stepping.py:Stepping")
    assert name == f"{file}:Stepping"
    problem: object = None
    assert tune.make_tuner(name, problem, 5, step=2).ask(3) == [5, 7, 9]  # type: ignore[arg-type]
    (option,) = tune.tuner_options(name)
    assert (option.name, option.default, option.meaning) == ("step", 3, "Indices between two questions.")


def test_a_run_is_not_resumed_with_another_source(file: Path) -> None:
    name = f"{file}:Stepping"
    recorded = tune.resolve_options(name, step=4)
    assert recorded["step"] == 4 and len(str(recorded["source_sha256"])) == 64
    assert tune.make_tuner(name, None, 0, **recorded).ask(2) == [0, 4]  # type: ignore[arg-type]
    file.write_text(SOURCE + "\n# changed\n")
    with pytest.raises(tune.TunerOptionError, match="restore its source, or begin a new run"):
        tune.make_tuner(name, None, 0, **recorded)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("attribute", "words"),
    [("Steping", "classes with `ask` in it: Stepping"), ("Other", "has no ask and no tell")],
)
def test_an_object_that_is_no_tuner_is_refused_in_one_line(file: Path, attribute: str, words: str) -> None:
    with pytest.raises(tune.PluginError, match=words):
        tune.resolve_options(f"{file}:{attribute}")


def test_a_missing_file_and_one_with_an_error_are_said(file: Path) -> None:
    with pytest.raises(tune.PluginError, match="there is no file"):
        tune.resolve_options("nowhere.py:Tuner")
    (file.parent / "broken.py").write_text("import nothing_of_this_name")
    with pytest.raises(tune.PluginError, match=r"broken.py cannot be imported: ModuleNotFoundError"):
        tune.resolve_options(f"{file.parent / 'broken.py'}:Tuner")


def test_an_installed_package_offers_its_tuner(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = file.parent / "stepping_package-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: stepping-package\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[hilt.tuners]\nstepping = stepping:Stepping\nlost = nowhere:Tuner\n")
    monkeypatch.syspath_prepend(str(file.parent))
    assert tune.tuner_names()[-2:] == ["lost", "stepping"]
    assert tune.tuner_summaries()["stepping"] == "Every third configuration."
    assert "nowhere:Tuner cannot be loaded" in tune.tuner_summaries()["lost"]
    assert tune.make_tuner("stepping", None, 1).ask(1) == [1]  # type: ignore[arg-type]


def test_a_mistyped_tuner_gets_the_nearest() -> None:
    with pytest.raises(tune.UnknownTunerError, match="did you mean autotvm"):
        tune.resolve_options("autotmv")


@pytest.mark.parametrize("name", list(_TUNERS))
def test_every_option_of_hilts_tuners_says_its_meaning(name: str) -> None:
    assert not [option.name for option in tune.tuner_options(name) if not option.meaning]
