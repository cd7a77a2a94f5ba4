from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from threadpoolctl import threadpool_info

from hilt.tune import TuningProblem, make_tuner
from hilt.tune.model_guided.gaussian_process import GaussianProcess
from hilt.tune.one_thread import on_one_thread

from .ml2tuner.problems import PROBLEM


def threads() -> set[int]:
    assert len(np.eye(2)) == len(scipy.linalg.inv(np.eye(2)))  # both libraries are loaded
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


def test_inside_there_is_one_thread_and_afterwards_there_are_as_many_as_before() -> None:
    before = threads()

    @on_one_thread
    def inside() -> set[int]:
        return threads()

    @on_one_thread
    def failing() -> None:
        raise ValueError

    assert inside() == {1}
    with pytest.raises(ValueError):
        failing()
    assert threads() == before


@pytest.mark.slow
def test_hilt_computes_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[int] = set()
    predict = GaussianProcess.predict

    def spy(process: GaussianProcess, inputs: object, distances: object = None) -> object:
        seen.update(threads())
        return predict(process, inputs)  # type: ignore[arg-type]

    monkeypatch.setattr(GaussianProcess, "predict", spy)
    small = TuningProblem.of(PROBLEM.workload, PROBLEM.accelerator)
    assert make_tuner("hilt", small, 0).ask(2)
    assert seen == {1}
