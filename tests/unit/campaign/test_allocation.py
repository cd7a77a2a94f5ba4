"""The choice of the run that gets the next trials."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilt.campaign.allocation import ALPHA, MINIMUM_TRIALS, UNSOLVED, WINDOW, LayerStatus, choose
from hilt.campaign.budget import Budget, parse_budget
from hilt.engine.errors import SettingsError


def standing(
    instances: int = 1, best: float = 20.0, bound: float = 10.0, asked: int = 10, **more: float
) -> LayerStatus:
    return LayerStatus(instances, asked, [best] * asked, bound, **more)


def test_the_gain_by_hand() -> None:
    bests = [100.0, 60.0, 60.0, 40.0, 40.0]
    each = LayerStatus(3, 6, bests, 16.0, 0.25)
    assert each.expected_gain == pytest.approx(3 * 0.75 * (ALPHA * (100 - 40) / 4 + (1 - ALPHA) * (40 - 16) / 6))
    long = LayerStatus(1, 40, [100.0] * 20 + [50.0] * 3 + [30.0] * 7, 30.0)
    assert long.expected_gain == pytest.approx(ALPHA * (50.0 - 30.0) / WINDOW), "at its bound only history is left"
    unsolved = LayerStatus(2, 8, [None] * 8, 5.0)
    assert unsolved.expected_gain == pytest.approx(2 * (UNSOLVED - 1) * 5.0 / 8)


def test_trials_are_drawn_from_these_phases() -> None:
    base = standing()
    assert choose([base, standing(instances=4)]) == (1, standing(instances=4).expected_gain)
    assert choose([base, standing(best=30.0)]) is not None and choose([base, standing(best=30.0)])[0] == 1  # type: ignore[index]
    assert choose([standing(confidence=0.9), base])[0] == 1  # type: ignore[index]
    assert choose([standing(asked=20), standing(asked=10)])[0] == 1  # type: ignore[index]
    assert choose([base, base])[0] == 0, "equals go in order"  # type: ignore[index]
    assert choose([None, base])[0] == 1  # type: ignore[index]
    assert choose([None, None]) is None


standings = st.builds(
    LayerStatus,
    st.integers(1, 20),
    st.integers(0, 200),
    st.lists(st.one_of(st.none(), st.floats(1, 1e6)), max_size=30).map(
        lambda values: [min(filter(None, values[: n + 1]), default=None) for n in range(len(values))]
    ),
    st.floats(0.1, 1e5),
    st.floats(0, 1),
)


@given(st.lists(standings, min_size=1, max_size=12))
def test_nobody_below_the_minimum_waits(all_of_them: list[LayerStatus]) -> None:
    chosen = choose(all_of_them)
    assert chosen is not None
    place, gain = chosen
    fewest = min(each.asked for each in all_of_them)
    if fewest < MINIMUM_TRIALS:
        assert all_of_them[place].asked == fewest and gain == 0
    else:
        assert gain == max(each.expected_gain for each in all_of_them) >= 0


def test_every_layer_is_looked_at_again() -> None:
    """Optimism falls with trials: one with a hundredth of the others' share is not forgotten for ever."""
    asked = [10, 10, 10]
    for _ in range(2000):
        chosen = choose([standing(100, asked=asked[0]), standing(100, asked=asked[1]), standing(1, asked=asked[2])])
        assert chosen is not None
        asked[chosen[0]] += 1
    assert asked[2] > 10
    assert asked[0] == pytest.approx(asked[1], abs=1) and asked[0] > 50 * asked[2]


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("200", Budget(trials=200)),
        ("2h", Budget(seconds=7200)),
        ("90m", Budget(seconds=5400)),
        ("1h30m", Budget(seconds=5400)),
        ("1.5h", Budget(seconds=5400)),
        ("45 s", Budget(seconds=45)),
    ],
)
def test_budgets(text: str, budget: Budget) -> None:
    assert parse_budget(text) == budget
    assert Budget.from_dict(budget.to_dict()) == budget
    assert parse_budget(str(budget).removesuffix(" trials")) == budget


@pytest.mark.parametrize(
    ("budget", "text"),
    [
        (Budget(trials=7), "7 trials"),
        (Budget(seconds=7200), "2h"),
        (Budget(seconds=5400), "1h30m"),
        (Budget(seconds=3661), "1h1m1s"),
        (Budget(seconds=59.5), "59.5s"),
        (Budget(seconds=90.25), "1m30.25s"),
        (Budget(seconds=0.25), "0.25s"),
        (Budget(seconds=1e9), "277777h46m40s"),
    ],
)
def test_a_budget_is_written_in_whole_units_and_read_as_it_was(budget: Budget, text: str) -> None:
    assert str(budget) == text
    assert parse_budget(text.removesuffix(" trials")) == budget


@pytest.mark.parametrize("text", ["1000000000s", "9" * 18, "0.001s"])
def test_the_longest_and_shortest_budgets(text: str) -> None:
    assert parse_budget(text) == (Budget(trials=int(text)) if text.isdecimal() else Budget(seconds=float(text[:-1])))


@pytest.mark.parametrize("text", ["1000000001s", "9" * 19])
def test_a_longer_budget_is_none(text: str) -> None:
    with pytest.raises(SettingsError, match="neither a number of trials"):
        parse_budget(text)


@pytest.mark.parametrize(
    "text", ["", "0", "-3", "0h", "2d", "h", "2h30", "many", "1e3", "３00x", "9" * 5000, "9" * 400 + "h"]
)
def test_no_budgets(text: str) -> None:
    with pytest.raises(SettingsError, match="neither a number of trials"):
        parse_budget(text)
