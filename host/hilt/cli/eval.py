"""`hilt eval`: accuracy and images a second of a compiled network on a board."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hilt.cli.formatting import print_json
from hilt.cli.prose import say_text
from hilt.cli.run_network import telling
from hilt.cli.run_options import Wait
from hilt.cli.work import CommandWork

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hilt.network.board_run import BoardRunner, Overlapped
    from hilt.network.float_model import FloatModel
    from hilt.network.latency import Latency
    from hilt.network.metrics import Metric
    from hilt_runtime import Bundle

_AT_ONCE = 64
"""Images in one request at most: the board answers before the link is silent for long."""


BundleFile = Annotated[Path, typer.Argument(metavar="MODEL.hilt", help="A bundle of `hilt compile`.")]
Data = Annotated[
    Path, typer.Option("--data", metavar="FILE.npz", help="Arrays `x` (n, ...) and `y` (n, ...): images, targets.")
]
BoardName = Annotated[str, typer.Option(help="The board to run it on.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Take the first images only.")]
MetricName = Annotated[
    str, typer.Option(help="classes, top5, regression, detection (y: image ids), or FILE.py:FUNCTION of your own.")
]
Annotations = Annotated[
    Path | None, typer.Option(metavar="FILE.json", help="COCO's annotations, for --metric detection.")
]
FloatFile = Annotated[
    Path | None,
    typer.Option("--float", metavar="MODEL", help="The float model: the same metric by ONNX Runtime, and decibels."),
]


def evaluate_network(
    bundle: BundleFile,
    data: Data,
    board: BoardName = "virtual:pynq",
    limit: Limit = None,
    metric: MetricName = "classes",
    annotations: Annotations = None,
    float_model: FloatFile = None,
    wait: Wait = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure a network on a board by a metric, beside the float model; how many images a second."""
    from hilt.network.board_run import BoardRunner, open_bundle
    from hilt.network.float_model import FloatModel
    from hilt.network.graph_file import graph_of
    from hilt.network.metrics import metric_of
    from hilt.network.processor_time import processor_time
    from hilt.network.profile import profile

    judge = metric_of(metric, annotations)
    opened, contents = open_bundle(str(bundle))
    images, targets = _data(data, opened, limit, metric)
    reference = None if float_model is None else FloatModel(float_model, images)
    working = CommandWork(f"connecting to {board}", command=f"eval {bundle.name}")
    with working as work, BoardRunner(board, telling(work), wait=wait) as runner:
        started = time.perf_counter()
        advance = work.counter("board", "images")
        outputs, runs, engines, overlapped = _inferences(runner, opened, contents, images, advance)
        seconds = time.perf_counter() - started
    board_time = processor_time(board, graph_of(opened, contents), opened.manifest, engines)
    latency = profile(opened.manifest, runs, board_time, overlapped).latency
    scores = judge.score(outputs, targets)
    facts: dict[str, Any] = {
        "network": opened.manifest["name"],
        "board": board,
        "images": len(images),
        "metric": metric,
        "scores": scores,
        "images_per_second": latency.rate,
        "latency": latency.to_dict(),
        "wall_seconds": seconds,
    }
    if "accuracy" in scores:
        facts |= {"right": round(scores["accuracy"] * len(images)), "accuracy": scores["accuracy"]}
    if reference is not None:
        facts |= _beside_float(reference, judge, outputs, targets)
    if as_json:
        print_json(facts, "evaluation")
    else:
        _print(facts, latency)


def _beside_float(
    reference: FloatModel, judge: Metric, outputs: dict[str, NDArray[Any]], targets: NDArray[Any]
) -> dict[str, Any]:
    """Return the float model's scores, and the decibels of the board's outputs above their error."""
    with CommandWork(command="eval") as work:
        wanted = reference.outputs(work.counter("float model", "images"))
    return {"float": judge.score(wanted, targets), "signal_to_noise_db": reference.decibels(outputs, wanted)}


def _print(facts: Mapping[str, Any], latency: Latency) -> None:
    from hilt.network.latency import latency_text, runs_text

    count = facts["images"]
    right = f"{facts['right']} of {count} right ({100 * facts['accuracy']:.2f}%); " if "right" in facts else ""
    others = [f"{name} {value:.4f}" for name, value in facts["scores"].items() if name != "accuracy"]
    listed = f"{', '.join(others)} on {count} images; " if others else ""
    say_text(f"{facts['network']} on {facts['board']}: {right}{listed}{latency_text(latency)}")
    say_text(runs_text(latency))
    if "float" in facts:
        beside = ", ".join(f"{name} {value:.4f}" for name, value in facts["float"].items())
        decibels = facts["signal_to_noise_db"]
        say_text(
            f"float model on the same images: {beside}; the board's outputs are {decibels:.1f} dB above their error"
        )


def _inferences(
    runner: BoardRunner, opened: Bundle, contents: bytes, images: NDArray[Any], advance: Callable[[int, int], None]
) -> tuple[dict[str, NDArray[Any]], list[Any], Mapping[str, str], Overlapped]:
    """Return each output of all images, images first, the timed runs, each step's engine, and the overlap."""
    import numpy as np

    from hilt.network.inference_groups import groups
    from hilt_runtime.arrays import encode_arrays

    name, runs = opened.inputs[0]["name"], []
    engines: Mapping[str, str] = {}
    overlapped: Overlapped = (0, 0.0)
    made: dict[str, list[NDArray[Any]]] = {output["name"]: [] for output in opened.outputs}
    for places in groups(len(images), _AT_ONCE, advance):
        batch = images[places.start : places.stop]
        # Several images travel as one array; one image alone is the network's input itself.
        given = {name: batch if len(batch) > 1 else batch[0]}
        answer = runner.run(opened, contents, encode_arrays(given, {}), images=len(batch))
        for number in range(len(batch)):
            for output, values in made.items():
                values.append(answer.arrays[output if len(batch) == 1 else f"{number}/{output}"])
        runs += answer.runs
        engines = answer.engines
        overlapped = overlapped[0] + answer.overlapped[0], overlapped[1] + answer.overlapped[1]
    return {output: np.stack(values) for output, values in made.items()}, runs, engines, overlapped


def _data(path: Path, bundle: Bundle, limit: int | None, metric: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return images, each of the network's input shape, and targets. Raises ArrayFileError, BadParameter."""
    from hilt.network.array_file import read_arrays

    wanted = _only_input(bundle)
    arrays = read_arrays(path)
    if missing := [name for name in ("x", "y") if name not in arrays]:
        raise typer.BadParameter(f"{path} has no array {missing[0]}; it has {', '.join(arrays) or 'none'}")
    images, targets = _image_each(arrays["x"], tuple(wanted["shape"]), path), arrays["y"]
    _check_targets(targets, len(images), metric, bundle, path)
    if str(images.dtype) != wanted["dtype"]:
        raise typer.BadParameter(f"x in {path} is {images.dtype}, the network takes {wanted['dtype']}")
    return images[:limit], targets[:limit]


def _image_each(images: NDArray[Any], shape: tuple[int, ...], path: Path) -> NDArray[Any]:
    """Return images of a shape each, from ones with or without the batch axis. Raises BadParameter."""
    import numpy as np

    count = len(images) if images.ndim else 0
    if images.shape[1:] != shape and count and images[:1].size == np.prod(shape):
        images = images.reshape(count, *shape)
    if images.shape[1:] != shape or not count:
        raise typer.BadParameter(f"{path} has x {images.shape}; the network takes {shape} an image")
    return images


def _check_targets(targets: NDArray[Any], count: int, metric: str, bundle: Bundle, path: Path) -> None:
    """Raise BadParameter unless there is a target an image that the metric can take."""
    import numpy as np

    from hilt.network.array_file import are_numbers
    from hilt.network.metrics import check_classes

    text = f"{path} has y {targets.shape} of {targets.dtype} for {count} images"
    if not are_numbers(targets) or not targets.ndim or len(targets) != count:
        raise typer.BadParameter(text)
    if metric in ("classes", "top5", "detection") and targets.size != count:
        raise typer.BadParameter(f"{text}; give one class an image")
    if metric in ("classes", "top5"):
        check_classes(targets, int(np.prod(bundle.outputs[0]["shape"])), str(path))


def _only_input(bundle: Bundle) -> dict[str, Any]:
    """Return the input of a network that answers for one image at once. Raises BadParameter for another one."""
    first, *others = bundle.inputs
    if others:
        names = ", ".join(tensor["name"] for tensor in bundle.inputs)
        raise typer.BadParameter(f"{bundle.name} takes {names}; `hilt eval` is for networks of one input")
    batch, answers = first["shape"][:1], bundle.outputs[0]["shape"][:1]
    if batch == answers and batch > [1]:
        sizes = ",".join(map(str, (1, *first["shape"][1:])))
        raise typer.BadParameter(
            f"{bundle.name} takes {batch[0]} images at once; `hilt eval` is for one: "
            f"quantise and compile the model with --shape {first['name']}={sizes}"
        )
    return first
