from __future__ import annotations

import subprocess
import sys

import pytest

from hilt.schedule import load_workload
from hilt.schedule.space import Knob, Space
from hilt.tune import (
    TunerOptionError,
    TuningProblem,
    UnknownTunerError,
    make_tuner,
    resolve_options,
    tuner_names,
    tuner_summaries,
)
from hilt.vta.accelerator import Accelerator, load_parameters

PYNQ = Accelerator.for_parameters(load_parameters("pynq"))
FIXED = [Knob(name, (1,), True) for name in ("tile_b", "tile_w", "tile_ci", "tile_co", "oc_nthread")]
SPACE = Space([Knob("tile_h", (1, 2, 4, 8), True), Knob("h_nthread", (1, 2), False), *FIXED])
PROBLEM = TuningProblem(load_workload("resnet18.C2"), PYNQ, SPACE)


def test_names_are_listed() -> None:
    assert {"autotvm", "treegru", "ga", "grid", "random"} <= set(tuner_names())


@pytest.mark.slow
@pytest.mark.parametrize("name", tuner_names())
def test_each_is_made_and_uses_a_space_up(name: str) -> None:
    if name == "treegru":
        pytest.importorskip("torch", reason="the tuner treegru is an extra: pip install 'hilt[treegru]'")
    assert sorted(make_tuner(name, PROBLEM, 0).ask(100)) == list(range(8))


def test_treegru_without_its_extra_gets_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hilt.tune.autotvm.tree_gru.find_spec", lambda name: None)
    with pytest.raises(TunerOptionError, match=r"^tuner treegru needs PyTorch: pip install 'hilt\[treegru\]'$"):
        resolve_options("treegru")


def test_each_is_described_in_a_line() -> None:
    assert list(tuner_summaries()) == tuner_names()
    assert all(summary and len(summary) <= 80 and "\n" not in summary for summary in tuner_summaries().values())


def test_unknown_tuner_lists_the_known() -> None:
    with pytest.raises(UnknownTunerError, match=r"no tuner is called 'xgboost'; there are: hilt, random, "):
        make_tuner("xgboost", PROBLEM, 0)


def test_unknown_option_lists_the_allowed() -> None:
    with pytest.raises(TunerOptionError, match=r"tuner autotvm has no option 'plan'; its options: plan_size, "):
        make_tuner("autotvm", PROBLEM, 0, plan=3)
    with pytest.raises(TunerOptionError, match=r"tuner random has no option 'plan_size'; its options: none"):
        make_tuner("random", PROBLEM, 0, plan_size=3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"plan_size": "64"}, "option plan_size of tuner autotvm is a int, such as 64; not '64'"),
        ({"plan_size": True}, "not True"),
        ({"plan_size": 0}, "plan_size is at least 1, not 0"),
        ({"random_share": 1.5}, "random_share is between 0 and 1, not 1.5"),
        ({"loss": "hinge"}, "loss is one of rank, regression; not 'hinge'"),
        ({"features": "all"}, "features is one of knob, ast, context; not 'all'"),
        ({"acquisition": "ei"}, "acquisition ei needs loss=regression"),
        ({"acquisition": "ei", "loss": "regression", "bootstraps": 1}, "bootstraps is at least 2, not 1"),
        ({"diversity": -1}, r"diversity is 0 \(off\) or a factor from 1 on, not -1"),
        ({"history": "nowhere.json"}, "history nowhere.json cannot be read: No such file or directory"),
        ({"history_sha256": "ab"}, "history_sha256 is given, but no history"),
    ],
)
def test_values_out_of_range_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(TunerOptionError, match=message):
        make_tuner("autotvm", PROBLEM, 0, **options)


def test_resolved_options_are_tvms_defaults() -> None:
    """TVM_FACTS section 4."""
    assert resolve_options("autotvm", random_share=1) == {
        "plan_size": 64,
        "random_share": 1.0,
        "diversity": 0,
        "diversity_weight": 0.02,
        "annealing_iterations": 500,
        "annealing_points": 128,
        "annealing_patience": 50,
        "features": "knob",
        "loss": "rank",
        "rounds": 8000,
        "patience": 20,
        "acquisition": "none",
        "bootstraps": 5,
        "kappa": 1.96,
        "history": "",
        "history_sha256": "",
    }
    assert resolve_options("random") == {}


@pytest.mark.slow
def test_xgboost_is_loaded_by_the_first_fit_only() -> None:
    program = (
        "import sys; from hilt.tune import make_tuner\n"
        "assert not {'torch', 'xgboost', 'textual', 'paramiko', 'asyncssh'} & set(sys.modules), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
