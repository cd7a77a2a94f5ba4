"""`hilt eval`: accuracy and images a second of a compiled network on a board."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hilt.cli.formatting import print_json
from hilt.cli.run_network import tell

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hilt_runtime import Bundle

_AT_ONCE = 64
"""Images in one request: the board answers before the link is silent for long."""


def evaluate_network(
    bundle: Annotated[Path, typer.Argument(metavar="MODEL.hilt", help="A bundle of `hilt compile`.")],
    data: Annotated[
        Path, typer.Option("--data", metavar="FILE.npz", help="Arrays `x` (n, ...) and `y` (n,): images and classes.")
    ],
    board: Annotated[str, typer.Option(help="The board to run it on.")] = "virtual:pynq",
    limit: Annotated[int | None, typer.Option(min=1, help="Take the first images only.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Classify images on a board: how many are right, and how many a second."""
    import numpy as np

    from hilt.network.board_run import BoardRunner, open_bundle
    from hilt.network.latency import latency_text, runs_text
    from hilt.network.profile import profile
    from hilt_runtime.arrays import encode_arrays

    opened, contents = open_bundle(str(bundle))
    images, classes = _data(data, opened, limit)
    name, output = opened.inputs[0]["name"], opened.outputs[0]["name"]
    right, runs = 0, []
    with BoardRunner(board, tell) as runner:
        started = time.perf_counter()
        for first in range(0, len(images), _AT_ONCE):
            batch = images[first : first + _AT_ONCE]
            # Several images travel as one array; one image alone is the network's input itself.
            given = {name: batch if len(batch) > 1 else batch[0]}
            answer = runner.run(opened, contents, encode_arrays(given, {}), images=len(batch))
            for number, expected in enumerate(classes[first : first + _AT_ONCE]):
                scores = answer.arrays[output if len(batch) == 1 else f"{number}/{output}"]
                right += int(np.argmax(scores) == expected)
            runs += answer.runs
        seconds = time.perf_counter() - started
    figures = profile(opened.manifest, runs, board)
    accuracy = right / len(images)
    if as_json:
        print_json(
            {
                "network": opened.manifest["name"],
                "board": board,
                "images": len(images),
                "right": right,
                "accuracy": accuracy,
                "images_per_second": figures.latency.rate,
                "latency": figures.latency.to_dict(),
                "wall_seconds": seconds,
            },
            "evaluation",
        )
        return
    typer.echo(
        f"{opened.manifest['name']} on {board}: {right} of {len(images)} right ({100 * accuracy:.2f}%); "
        f"{latency_text(figures.latency)}"
    )
    typer.echo(runs_text(figures.latency))


def _data(path: Path, bundle: Bundle, limit: int | None) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return images, each of the network's input shape, and classes. Raises ArrayFileError, BadParameter."""
    import numpy as np

    from hilt.network.array_file import are_numbers, read_arrays

    wanted = _only_input(bundle)
    arrays = read_arrays(path)
    if missing := [name for name in ("x", "y") if name not in arrays]:
        raise typer.BadParameter(f"{path} has no array {missing[0]}; it has {', '.join(arrays) or 'none'}")
    shape, count = tuple(wanted["shape"]), len(arrays["x"]) if arrays["x"].ndim else 0
    images, classes = arrays["x"], arrays["y"]
    if images.shape[1:] != shape and count and images[:1].size == np.prod(shape):
        images = images.reshape(count, *shape)  # images without the batch axis
    if images.shape[1:] != shape or not count:
        raise typer.BadParameter(f"{path} has x {images.shape}; the network takes {shape} an image")
    if classes.size != count or not are_numbers(classes):
        raise typer.BadParameter(
            f"{path} has y {classes.shape} of {classes.dtype} for {count} images; give one class an image"
        )
    answers = int(np.prod(bundle.outputs[0]["shape"]))
    if strange := [value for value in classes.reshape(-1).tolist() if value not in range(answers)]:
        raise typer.BadParameter(
            f"{path} has class {strange[0]} in y; the network tells classes 0 to {answers - 1} apart"
        )
    if str(images.dtype) != wanted["dtype"]:
        raise typer.BadParameter(f"x in {path} is {images.dtype}, the network takes {wanted['dtype']}")
    return images[:limit], classes.reshape(-1)[:limit]


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
