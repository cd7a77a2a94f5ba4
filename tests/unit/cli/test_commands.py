"""Commands over a database.

Bad input gets one line with the remedy, and the exit code that the help names.
"""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hilt.cli import reference
from hilt.cli.attending_campaign import attend_campaign
from hilt.cli.exit_codes import Exit, report_error
from hilt.cli.main import run as hilt
from hilt.cli.runs import sparkline
from hilt.cli.summary import summary_text
from hilt.engine.durations import seconds_text
from hilt.schedule.onnx_model import Network
from hilt.store import Campaign, RunState, Store, Trial, database_path
from hilt.store.identifiers import run_or_campaign
from hilt.trial import Outcome, Verification
from tests.unit.store.examples import ELEMENTS, run, trial

HILT = Path(sys.executable).with_name("hilt")
HEAVY = ("textual", "paramiko", "scipy", "xgboost", "asyncssh")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HILT_HOME", str(tmp_path))
    monkeypatch.delenv("HILT_DEBUG", raising=False)
    return tmp_path


@pytest.fixture
def filled(home: Path) -> Path:
    with Store(database_path(home)) as store:
        store.create_run(run("a" * 32, versions={"hilt": "0.1.0"}))
        store.record(
            "a" * 32,
            [
                Trial(0, 3, {"tile_h": 1}, Outcome.REJECTED, "inp_overflow"),
                trial(1, 7, 9_000.0),
                # The fastest of all, but half of its output was looked at.
                Trial(2, 9, {}, Outcome.OK, "", 1, 1.0, (1.0,), Verification(ELEMENTS // 2, 0), ELEMENTS),
                trial(3, 8, 6_000.0),
            ],
        )
        store.set_state("a" * 32, RunState.FINISHED)
        store.create_run(run("b" * 32, workload="resnet18.C2", created=2.0))
    return home


def test_importing_the_command_line_is_light() -> None:
    code = f"import sys, hilt.cli.main; print([name for name in {HEAVY} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_tuners_are_listed_and_so_are_the_options_of_one(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert hilt(["tuners"]) == 0
    assert "grid  " in capsys.readouterr().out
    assert hilt(["tuners", "ga"]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "population 100 int Configurations of a generation." in words and "mutation 0.1 float" in words
    assert hilt(["tuners", "autotvm", "--json"]) == 0
    options = {option["name"]: option for option in json.loads(capsys.readouterr().out)["options"]}
    assert options["plan_size"]["default"] == 64 and "one fit" in options["plan_size"]["meaning"]
    assert hilt(["tuners", "luck"]) == 2


@pytest.mark.slow
def test_reading_history_loads_no_network_library(filled: Path) -> None:
    code = (
        "import sys; from hilt.cli.main import run; "
        "codes = [run(['runs', '--json']), run(['show', 'aa']), run(['best'])]; "
        f"sys.exit(str([codes, [name for name in {HEAVY} if name in sys.modules]]))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr == "[[0, 0, 0], []]\n"


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        (["frobnicate"], 2, ["frobnicate", "--help"]),
        (["tune"], 2, ["workload", "--help"]),
        (["tune", "resnet18.C55"], 2, ["'resnet18.C55'", "did you mean resnet18.C5"]),
        (["tune", "conv2d:n=1,ci=x"], 2, ["ci=x", "for example"]),
        (["tune", "resnet18.C5", "--board", "virtual:pinq"], 2, ["pinq", "did you mean virtual:pynq"]),
        (["tune", "resnet18.C5", "--board", "kitchen"], 2, ["kitchen", "boards.toml"]),
        (["tune", "resnet18.C5", "--tuner", "luck"], 2, ["luck", "there are: hilt, random"]),
        (["tune", "resnet18.C5", "--tuner-option", "depth=3"], 2, ["depth", "stop_at"]),
        (["tune", "resnet18.C5", "--tuner-option", "depth"], 2, ["NAME=VALUE"]),
        (["tune", "resnet18.C5", "--tuner-option", "stop_at=Infinity"], 2, ["stop_at is a number up to 2,147,483,647"]),
        (["tune", "resnet18.C5", "--tuner-option", "stop_at=1e999"], 2, ["stop_at is a number up to"]),
        (["tune", "resnet18.C5", "--tuner-option", "stop_at=NaN"], 2, ["stop_at is a number up to"]),
        (["tune", "resnet18.C5", "--tuner-option", "stop_at=[1e999]"], 2, ["stop_at", "not [inf]"]),
        (["tune", "resnet18.C5", "--tuner-option", r'history="\ud800"'], 2, ["history is '\\ud800', which is no text"]),
        (["tune", "resnet18.C5", "--tuner-option", "kappa=-" + "9" * 400], 2, ["kappa is a number up to"]),
        (["tune", "resnet18.C5", "--trials", "0"], 2, ["trials is 0", "at least 1"]),
        (["tune", "resnet18.C5", "--trials", "many"], 2, ["--trials", "integer"]),
        (["tune", "resnet18.C5", "--checks", "none"], 2, ["none", "strict"]),
        (["tune", "resnet18.C5", "--space", "cube"], 2, ["cube", "autotvm", "ml2"]),
        (["tune", "resnet18.C5", "--orders", "3"], 2, ["orders is 3", "1 or 4"]),
        (["tune", "resnet18.C5", "--space", "ml2", "--orders", "4"], 2, ["orders is 4", "ml2 has 1"]),
        (["tune", "resnet18.C5", "--time-limit", "-1"], 2, ["time limit", "above 0"]),
        (["show", "cc"], 2, ["no run or campaign 'cc'", "hilt runs"]),
        (["runs", "--limit", "1" + "0" * 30], 2, ["--limit", str(2**63 - 1)]),
        (["resume", "cc"], 2, ["no run or campaign 'cc'", "hilt runs", "hilt campaigns"]),
        (["report", "cc", "--csv", "cc.csv"], 2, ["no run or campaign 'cc'"]),
        (["campaign", "resnet81", "--budget", "60"], 2, ["no network named 'resnet81'", "resnet18", "model.onnx"]),
        (
            ["campaign", "resnet8", "--budget", "60"],
            2,
            ["no network named 'resnet8'", "zoo.make('resnet8')", "quantize"],
        ),
        (["campaign", "resnet18", "--tuner", "random"], 2, ["Missing option '--budget'"]),
        (["campaign", "resnet18", "--budget", "60", "--board", "virtual:pinq"], 2, ["did you mean virtual:pynq"]),
        (["best", "aaaaaaaa"], 2, ["aaaaaaaa"]),
        (["stop", "cc"], 2, ["no run or campaign 'cc'"]),
        (["pause", "last"], 2, ["no runs yet"]),
        (["skip", "cc", "C2"], 2, ["no run or campaign 'cc'"]),
        (["resume", "last"], 2, ["no runs yet", "hilt tune"]),
        (["trace", "resnet18.C5", "0", "--waves", "gone/w.fst"], 2, ["cannot write gone/w.fst: its folder is missing"]),
        (["glimpse", "train", "--output", "/dev/null"], 2, ["cannot write /dev/null: it is no ordinary file"]),
        (["bench", "trials", "--output", f"{__file__}/results"], 2, ["cannot make the folder"]),
        (["bitstream", "verify", "pynk", __file__], 2, ["no bitstream named 'pynk'", "pynq"]),
        (["bitstream", "verify", "pynq", __file__], 2, [Path(__file__).name, "is no .bit file"]),
        (["bitstream", "verify", "pynq", "gone.bit"], 2, ["gone.bit", "does not exist"]),
    ],
)
def test_bad_input_gets_one_line(
    home: Path, capsys: pytest.CaptureFixture[str], command: list[str], code: int, words: list[str]
) -> None:
    assert hilt(command) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("hilt: ") and said.err.count("\n") == 1
    for word in words:
        assert word in said.err


@pytest.mark.parametrize("command", [["runs"], ["show", "last"], ["best"], ["resume", "aa"], ["tune", "resnet18.C5"]])
def test_a_corrupt_database_gets_one_line(home: Path, capsys: pytest.CaptureFixture[str], command: list[str]) -> None:
    database_path(home).write_text("shopping list\n" * 1000)
    assert hilt(command) == 4
    said = capsys.readouterr()
    assert said.err.count("\n") == 1 and "hilt.db is damaged" in said.err and "move it away" in said.err


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_home_that_cannot_be_made_gets_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("HILT_HOME", str(tmp_path / place))
    assert hilt(["runs"]) == 4
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and f"cannot make {tmp_path / place} (" in said and "set HILT_HOME" in said


def test_an_error_of_the_system_is_no_internal_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert report_error(PermissionError(errno.EACCES, "Permission denied", "/home/quarantine")) is Exit.STORE
    assert capsys.readouterr().err == "hilt: /home/quarantine: Permission denied\n"


@pytest.mark.slow
@pytest.mark.parametrize("closed", [(1,), (2,), (1, 2)])
def test_closed_streams_change_no_exit_code(filled: Path, closed: tuple[int, ...]) -> None:
    code = f"import os; [os.close(number) for number in {closed}]; os.execv({str(HILT)!r}, ['hilt', *{{}}])"
    for command, expected in ((["runs", "--json"], 0), (["show", "cc"], 2)):
        done = subprocess.run([sys.executable, "-c", code.format(command)], capture_output=True, text=True)
        assert done.returncode == expected
        assert (1 in closed) <= (done.stdout == "")
        assert "hilt:" not in done.stdout, "an error never goes where results are looked for"


def test_ctrl_c_while_the_command_line_is_loaded_is_no_traceback() -> None:
    code = (
        "import sys\n"
        "class Pressed:\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'hilt.cli.main': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Pressed())\n"
        "from hilt.cli.entry import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_an_id_of_a_run_and_of_a_campaign_is_not_guessed_at(filled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Store(database_path(filled)) as store:
        for uuid in ("ab" + "0" * 30, "ab" + "1" * 30):
            store.create_campaign(Campaign(uuid, "net", {}, {}, 1.0, {"trials": 8}))
        assert run_or_campaign(store, "ab0") == store.campaign("ab0")
        assert run_or_campaign(store, "aa") == store.run("aa") == run_or_campaign(store, "A" * 32)
        assert run_or_campaign(store, "last") == store.run("b")
    for identifier, words in (("a", "campaign begins with 'a'"), ("ab", "more than one campaign begins with 'ab'")):
        for command in (["resume", identifier], ["report", identifier, "--csv", str(filled / "a.csv")]):
            assert hilt(command) == 2
            assert words.split()[-1] in (said := capsys.readouterr().err) and "give more of its id" in said
    assert not (filled / "a.csv").exists()


def test_who_leaves_a_campaign_hears_with_json_how_far_it_is(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = Campaign("c" * 32, "net", Network("net", (), {}).to_dict(), {"board": "virtual:pynq"}, 1.0, {"trials": 8})
    with Store(database_path(home)) as store:
        store.create_campaign(found)
    assert attend_campaign(home, found, detach=True, as_json=True) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["campaign"] == found.uuid and "goes on by itself" in said.err


@pytest.mark.slow
def test_a_full_disk_gets_one_line(home: Path) -> None:
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)); "
        "from hilt.cli.main import run; sys.exit(run(['tune', 'resnet18.C5']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 4
    assert done.stderr.count("\n") == 1 and "disk" in done.stderr


def test_tracebacks_only_when_asked_for(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hilt(["show", "cc"])
    assert "Traceback" not in capsys.readouterr().err
    monkeypatch.setenv("HILT_DEBUG", "1")
    hilt(["show", "cc"])
    assert "Traceback" in capsys.readouterr().err


def test_an_error_of_hilts_own_has_no_words_of_the_parser(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert hilt(["tune", "resnet18.C5", "--tuner-option", "depth"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("hilt: --tuner-option") and "Invalid value" not in said and "COMMAND --help" not in said


def test_a_layers_trials_are_not_set_against_its_campaigns_budget(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Store(database_path(home)) as store:
        store.create_campaign(Campaign("c" * 32, "resnet18", {"layers": []}, {}, 1.0, {"trials": 60}))
        store.create_run(run("a" * 32, budget=60, campaign="c" * 32))
    assert hilt(["runs"]) == 0
    assert "0/60" not in capsys.readouterr().out


def test_runs(filled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert hilt(["runs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[:3] == ["bbbbbbbb", "resnet18.C2", "virtual:pynq"]
    assert "interrupted" in lines[1]  # it says created, and has no engine
    assert "6,000.0" in lines[2] and "4/64" in lines[2] and "finished" in lines[2]
    assert hilt(["runs", "--json", "--limit", "1"]) == 0
    (only,) = json.loads(capsys.readouterr().out)["items"]
    assert (only["run"], only["best"], only["state"]) == ("b" * 32, None, "interrupted")


def test_show(filled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert hilt(["show", "aaa", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["run"] == "a" * 32
    assert (shown["workload"], shown["board"], shown["trials"]) == ("resnet18.C5", "virtual:pynq", 4)
    assert (shown["valid"], shown["outcomes"]) == (2, {"ok": 3, "rejected": 1})
    best = shown["best"]
    assert best["knobs"] == {"tile_h": 2, "tile_w": 7}
    assert (best["index"], best["ordinal"], best["cycles"], best["microseconds"]) == (8, 3, 600_000, 6000.0)
    assert best["verified"] is True
    assert best["percent_of_bound"] == pytest.approx(100 * 4515.84 / 6000)
    assert shown["improvements"] == [{"ordinal": 1, "microseconds": 9000.0}, {"ordinal": 3, "microseconds": 6000.0}]
    assert hilt(["show", "aaa"]) == 0
    text = capsys.readouterr().out
    for words in ("inp_overflow 1", "tile_h=2 tile_w=7", "600,000 cycles = 6,000.0 µs at 100 MHz", "75.3% of the roof"):
        assert words in text
    assert hilt(["show", "b"]) == 0
    assert "no verified configuration yet" in capsys.readouterr().out


def test_best(filled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert hilt(["best", "--json"]) == 0
    (only,) = json.loads(capsys.readouterr().out)["items"]
    assert (only["workload"], only["board"], only["best"]["index"]) == ("resnet18.C5", "virtual:pynq", 8)
    assert hilt(["best"]) == 0
    assert "tile_h=2 tile_w=7" in capsys.readouterr().out
    assert hilt(["best", "resnet18.C2"]) == 1
    assert "no verified configuration of resnet18.C2 yet" in capsys.readouterr().out


def test_boards(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert hilt(["boards", "--json"]) == 0
    boards = {each["board"]: each for each in json.loads(capsys.readouterr().out)["items"]}
    assert boards["virtual:pynq"]["parameters"] == "1x16_i8w8a32_15_15_18_17"
    assert boards["virtual:zcu102"]["isa"] == "wide"
    assert hilt(["boards"]) == 0
    assert "virtual:ultra96" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("command", [["runs"], ["best", "--json"], ["--help"]])
def test_a_reader_that_went_away_is_no_failure(filled: Path, command: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        done = subprocess.run([HILT, *command], stdout=pipe, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("command", [[], ["log"], ["bitstream"], ["dataset"], ["glimpse"]])
def test_a_group_without_a_command_prints_its_help_and_no_more(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert hilt(command) == 2
    said = capsys.readouterr()
    assert "Usage: hilt" in said.out and said.err == ""


@pytest.mark.parametrize("command", reference.commands(), ids=lambda command: command.words)
def test_no_help_is_cut_at_80_columns(
    command: reference.CommandReference, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert hilt([*command.words.split()[1:], "--help"]) == 0
    assert "…" not in capsys.readouterr().out


def test_a_run_that_has_finished_is_not_resumed_wherever_it_ran(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Store(database_path(home)) as store:
        store.create_run(run("a" * 32, board="a board that was removed"))
        store.set_state("a" * 32, RunState.FINISHED)
    assert hilt(["resume", "last"]) == 2
    assert "run aaaaaaaa has finished" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--output", "results", "--detach"], "`hilt resume ID --output FOLDER` writes it later"),
        (["--output", f"{__file__}/results"], "cannot make the folder"),
    ],
)
def test_where_a_campaign_cannot_write_is_said_before_it_begins(
    home: Path, capsys: pytest.CaptureFixture[str], options: list[str], words: str
) -> None:
    assert hilt(["campaign", "resnet18", "--budget", "40", *options]) == 2
    assert words in capsys.readouterr().err
    with Store(database_path(home)) as store:
        assert not store.runs(1) and not store.campaigns()


def test_help_says_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert hilt(["--help"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for words in ("0 ok", "1 no verified", "2 bad input", "3 the board", "4 the database", "130 interrupted"):
        assert words in text


def test_sparkline_falls_from_the_first_verified_trial() -> None:
    assert sparkline([(2, 80.0), (5, 10.0)], 8) == "  ███▁▁▁"
    assert sparkline([(0, 80.0), (1, 45.0), (2, 10.0)], 3) == "█▅▁" and sparkline([(0, 5.0)], 2) == "▁▁"
    long = sparkline([(1, 80.0), (119, 10.0)], 120)
    assert long == 59 * "█" + "▁", "60 columns, each of two trials, which shows the later one"
    assert sparkline([(0, 5.0)], 3) == "▁▁▁"
    assert len(sparkline([(0, 5.0), (999, 1.0)], 1000)) == 60


def test_time_left_is_said_in_few_words() -> None:
    assert [seconds_text(seconds) for seconds in (0.4, 59, 61, 3725)] == ["0 s", "59 s", "1 min 01 s", "1 h 02 min"]


def test_a_run_that_ended_before_its_budget_says_who_ended_it(filled: Path) -> None:
    with Store(database_path(filled)) as store:
        counted = summary_text(store, store.run("a" * 32)).splitlines()[1]
        assert counted.endswith("4 of 64 trials, 2 valid; the tuner asked for no more")
        sure = replace(store.run("a" * 32), detail="99.9% sure that nothing is 1% faster")
        assert "the tuner's assessment: 99.9% sure" in summary_text(store, sure)
        stopped = replace(store.run("a" * 32), state=RunState.STOPPED)
        assert "asked for no more" not in summary_text(store, stopped)


def test_a_run_whose_engine_was_killed_is_not_said_to_be_running(filled: Path) -> None:
    with Store(database_path(filled)) as store:
        store.set_state("b" * 32, RunState.RUNNING)
        killed = summary_text(store, store.run("b" * 32))
        assert "run bbbbbbbb, interrupted: " in killed and killed.endswith("`hilt resume bbbbbbbb` goes on")
        assert "run bbbbbbbb, running: " in summary_text(store, store.run("b" * 32), running=True)
