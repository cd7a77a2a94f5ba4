"""Commands at work in the terminal UI: phase, count and time left while they work, their inference when they end."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from hilt.engine.command_progress import CommandFile, CommandProgress
from hilt.store import Store, database_path
from hilt.tui.campaign_view import CampaignView
from tests.unit.report.campaign_store import make

from .live import app_of, keep_inference, make_run, text_of, until

pytestmark = pytest.mark.tui


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_the_list_shows_commands_at_work(tmp_path: Path, size: tuple[int, int]) -> None:
    make_run(tmp_path)
    with app_of(tmp_path) as app:
        async with app.run_test(size=size) as pilot:
            await pilot.press("7")
            await until(pilot, lambda: "1 row, newest first" in text_of(pilot))
            with CommandFile(tmp_path) as file:
                began = time.time() - 10
                file.put(CommandProgress("quantize net.onnx", "", "quantising", began, 5, 20, "steps"))
                line = re.compile("quantize net.onnx  quantising: 5 of 20 steps, .* left")
                await until(pilot, lambda: line.search(text_of(pilot)))
                file.put(CommandProgress("quantize net.onnx", "", "verifying", began, 3, 15, "tensors"))
                await until(pilot, lambda: "quantize net.onnx  verifying: 3 of 15 tensors, " in text_of(pilot))
            await until(pilot, lambda: "quantize net.onnx" not in text_of(pilot))


async def test_the_network_of_a_run_is_shown_when_it_ends_and_earlier_ones_a_key_away(tmp_path: Path) -> None:
    make_run(tmp_path)
    with app_of(tmp_path) as app:
        async with app.run_test(size=(120, 40)) as pilot:
            await pilot.press("8")
            await until(pilot, lambda: "no inference yet" in text_of(pilot))
            for name in ("first", "second"):
                with CommandFile(tmp_path) as file:
                    file.put(CommandProgress(f"run {name}.hilt", "", "1 inference", time.time()))
                    await until(pilot, lambda name=name: f"run {name}.hilt  1 inference" in text_of(pilot))
                    keep_inference(tmp_path, name)
                await until(pilot, lambda name=name: f"{name} on virtual:pynq" in text_of(pilot))
            await pilot.press("c")
            await until(pilot, lambda: "first on virtual:pynq" in text_of(pilot))
            await pilot.press("c")
            await until(pilot, lambda: "second on virtual:pynq" in text_of(pilot))


def test_a_campaign_shows_its_last_stage_while_it_goes_on(tmp_path: Path) -> None:
    campaign, _ = make(tmp_path)
    with Store(database_path(tmp_path)) as store:
        with CommandFile(tmp_path) as file:
            file.put(CommandProgress("campaign cccc", campaign.uuid, "3/7 layers: Conv_3", time.time(), 2, 9, "layers"))
            words = CampaignView.load(store, tmp_path, campaign).state_words
            assert words.startswith("NETWORK 3/7 layers: Conv_3: 2 of 9 layers")
        assert CampaignView.load(store, tmp_path, campaign).state_words == "FINISHED"
