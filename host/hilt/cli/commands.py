"""Every command by name: its line in `hilt --help`, and the module that is imported when it is called.

`hilt --help` imports no command. A new command is one row here and one function, whose docstring is the text of
`hilt COMMAND --help`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


@dataclass(frozen=True)
class CommandEntry:
    """A command of `hilt`, not yet imported."""

    name: str
    panel: str
    """The heading that `hilt --help` lists it under."""
    place: str
    """`module:attribute` of its function, or of the Typer application of a group."""
    summary: str

    def load(self) -> Callable[..., Any] | typer.Typer:
        """Import the command and return its function, or its group."""
        module, _, attribute = self.place.partition(":")
        loaded: Callable[..., Any] | typer.Typer = getattr(import_module(f"hilt.cli.{module}"), attribute)
        return loaded


_TUNING, _NETWORKS, _RESULTS, _HARDWARE = "Tuning", "Networks", "Results", "Schedules and hardware"
_BOARDS, _EXPERIMENTS = "Boards", "Tuners and experiments"

COMMANDS = (
    CommandEntry(
        "tune", _TUNING, "tune:tune", "Find the fastest schedule of a workload by trying schedules on a board."
    ),
    CommandEntry(
        "campaign", _TUNING, "campaign:campaign", "Tune a whole network: trials go to the layers where they save most."
    ),
    CommandEntry("pause", _TUNING, "steering:pause", "Pause a run or a campaign."),
    CommandEntry("resume", _TUNING, "steering:resume", "Go on with a run or a campaign, or attach to one that runs."),
    CommandEntry("stop", _TUNING, "steering:stop", "Stop a run or a campaign; `hilt resume` goes on."),
    CommandEntry("skip", _TUNING, "steering:skip", "Give a layer of a running campaign no more trials."),
    CommandEntry(
        "tui", _TUNING, "tui:tui", "Watch and steer runs and campaigns in the terminal; closing it stops nothing."
    ),
    CommandEntry("quantize", _NETWORKS, "quantize:quantize", "Quantise a model to int8 with power-of-two scales."),
    CommandEntry("compile", _NETWORKS, "compile:compile_model", "Compile a quantised model to a bundle for a board."),
    CommandEntry("run", _NETWORKS, "run_network:run_network", "Run a compiled network on a board."),
    CommandEntry("eval", _NETWORKS, "eval:evaluate_network", "Measure accuracy and images a second on a board."),
    CommandEntry("runs", _RESULTS, "runs:runs", "List tuning runs, newest first."),
    CommandEntry("campaigns", _RESULTS, "campaign:campaigns", "List campaigns, newest first."),
    CommandEntry("show", _RESULTS, "runs:show", "Show a run or a campaign: settings, results, latency."),
    CommandEntry(
        "best", _RESULTS, "runs:best", "List the best verified configuration of every workload on every board."
    ),
    CommandEntry("tag", _RESULTS, "labels:tag", "Give a run or a campaign tags, or take them away."),
    CommandEntry("note", _RESULTS, "labels:note", "Write a note on a run or a campaign, or print it."),
    CommandEntry("archive", _RESULTS, "labels:archive", "Leave runs and campaigns out of the lists; nothing is lost."),
    CommandEntry("delete", _RESULTS, "labels:delete", "Delete runs and campaigns for good; asks first."),
    CommandEntry("compare", _RESULTS, "compare:compare", "Compare runs: best latency, spread over seeds, curves."),
    CommandEntry("report", _RESULTS, "report:report", "Write a report of runs or a campaign: page, pictures, tables."),
    CommandEntry(
        "log", _RESULTS, "log:application", "Exchange results with AutoTVM's logs; write histories to transfer from."
    ),
    CommandEntry(
        "space", _HARDWARE, "space:space", "Show the size of a space, and the share that each level of checks accepts."
    ),
    CommandEntry(
        "explain",
        _HARDWARE,
        "explain:explain",
        "Explain one configuration: loops, buffers, bytes, verdict, predicted cycles.",
    ),
    CommandEntry("trace", _HARDWARE, "trace:trace", "Write a timeline or the waves of one configuration's program."),
    CommandEntry("sim", _HARDWARE, "sim:sim", "Run a program made elsewhere on the RTL or the golden model."),
    CommandEntry(
        "explore",
        _HARDWARE,
        "explore:explore",
        "Find the VTA parameters that run a network fastest, and their area.",
    ),
    CommandEntry(
        "silicon", _HARDWARE, "silicon:application", "Fit and use timing models of boards with public bitstreams."
    ),
    CommandEntry("boards", _BOARDS, "boards:application", "List boards; add, check, switch and release them."),
    CommandEntry("bitstream", _BOARDS, "bitstream:application", "List, verify, add and fetch bitstreams."),
    CommandEntry("tuners", _EXPERIMENTS, "tuners:tuners", "List the tuners, or the options of one."),
    CommandEntry(
        "bench",
        _EXPERIMENTS,
        "bench:bench",
        "Reproduce the experiments of four papers, and ours, on recorded datasets.",
    ),
    CommandEntry(
        "dataset",
        _EXPERIMENTS,
        "dataset:application",
        "Record the outcome and cycles of every configuration of a space.",
    ),
    CommandEntry("glimpse", _EXPERIMENTS, "glimpse:application", "Show or train the weights of the tuner glimpse."),
)


def parser_of(entry: CommandEntry) -> TyperCommand | TyperGroup:
    """Import a command and return it as the command line's parser has it."""
    loaded = entry.load()
    if not isinstance(loaded, typer.Typer):
        application = typer.Typer(add_completion=False)
        application.command(entry.name, rich_help_panel=entry.panel)(loaded)
        loaded = application
    made: Any = typer.main.get_command(loaded)
    made.name, made.rich_help_panel = entry.name, entry.panel
    # A group's parser brings no completion of its own: the outermost has it.
    made.params = [
        parameter for parameter in made.params if parameter.name not in ("install_completion", "show_completion")
    ]
    parser: TyperCommand | TyperGroup = made
    return parser


class LazyCommands(MutableMapping[str, Any]):
    """The commands by name, each imported when it is looked up."""

    def __init__(self, entries: tuple[CommandEntry, ...] = COMMANDS) -> None:
        self._entries = {entry.name: entry for entry in entries}
        self._parsers: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._parsers:
            self._parsers[name] = parser_of(self._entries[name])
        return self._parsers[name]

    def __setitem__(self, name: str, parser: Any) -> None:
        self._parsers[name] = parser

    def __delitem__(self, name: str) -> None:
        del self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def placeholder(self, name: str) -> TyperCommand | None:
        """Return a command that is only its name and summary, for help and completion."""
        entry = self._entries.get(name)
        if entry is None:
            return None
        return TyperCommand(name=entry.name, help=entry.summary, callback=lambda: None, rich_help_panel=entry.panel)


class LazyGroup(TyperGroup):
    """`hilt` itself: its help shows every command, and only the command that is called is imported."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands: LazyCommands = LazyCommands()

    def list_commands(self, context: Any) -> list[str]:
        """Return the names, in the order of the table."""
        return list(self.commands)

    def get_command(self, context: Any, name: str) -> Any:
        """Return the command's name and summary, which is all that help and completion of names need."""
        return self.commands.placeholder(name)

    def resolve_command(self, context: Any, arguments: list[str]) -> Any:
        """Return the command that the first argument names, imported; raise the parser's error with near names."""
        name, command, rest = super().resolve_command(context, arguments)
        return name, command if name is None else self.commands[name], rest
