"""`hilt quantize`: from a float ONNX model to one that VTA computes exactly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hilt.cli import tables
from hilt.cli.files import check_folder
from hilt.cli.formatting import print_json
from hilt.cli.input_options import Shapes, Values, read_shapes, read_values
from hilt.cli.prose import say_text
from hilt.cli.work import CommandWork

if TYPE_CHECKING:
    from hilt.network.images import Images
    from hilt.network.quantize.quantizer import Agreement, Quantisation


_AUTO_DECIBELS = 20.0


ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="An .onnx or .tflite model, in float or quantised by others.")
]
CalibrationData = Annotated[
    Path, typer.Option("--calibration", metavar="DATA.npz", help="Inputs by name, (samples, ...); or one .npy.")
]
OutputFile = Annotated[Path, typer.Option("--output", "-o", metavar="FILE.onnx", help="The QDQ model to write.")]
LabelName = Annotated[str, typer.Option(metavar="NAME", help="The array of classes in the data: measure the accuracy.")]
ChannelBlock = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="Output channels that share a weight scale, the block of the board's VTA or a multiple; 0: one scale a "
        "layer. Unless given, 32 where the network has less than 20 dB without.",
        show_default=False,
    ),
]
Kept = Annotated[
    list[str] | None,
    typer.Option("--float", metavar="NODE", help="Keep a node in float on the processor; `auto`: as --min-db 20."),
]
LeastDecibels = Annotated[
    float | None,
    typer.Option(min=0, max=60, help="Keep as few layers in float as bring each output to so many decibels."),
]
Borders = Annotated[
    bool | None,
    typer.Option(
        help="Let padded convolutions read a constant around their data in place of zeros: more decibels, but VTA "
        "takes some per cent longer, and up to a fifth with depthwise layers. Unless given, depthwise layers do so "
        "where the network has less than 20 dB without, others where it gains a quarter of a decibel.",
        show_default=False,
    ),
]
Mean = Annotated[
    str, typer.Option(metavar="M,..", help="The model reads uint8 images: (pixel - mean) / scale, by channel.")
]
Scale = Annotated[str, typer.Option(metavar="S,..", help="See --mean; pixels are 0 to 255.")]
LayoutName = Annotated[str, typer.Option(help="Of these images: nhwc or nchw; nhwc unless given.")]
Search = Annotated[bool, typer.Option(help="Improve the scales by their effect on the outputs.")]


def quantize(
    model: ModelFile,
    calibration: CalibrationData,
    output: OutputFile,
    labels: LabelName = "",
    shape: Shapes = None,
    value: Values = None,
    channel_block: ChannelBlock = None,
    keep: Kept = None,
    min_db: LeastDecibels = None,
    borders: Borders = None,
    mean: Mean = "",
    scale: Scale = "",
    layout: LayoutName = "",
    search: Search = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Quantise a network (ONNX, TFLite) to int8 with power-of-two scales, and print the cost."""
    check_folder(output)
    kept = [name for name in keep or [] if name != "auto"]
    if min_db is None and len(kept) < len(keep or []):
        min_db = _AUTO_DECIBELS
    with CommandWork(f"reading {model} and running its samples", command=f"quantize {model.name}") as work:
        from hilt.network.quantize.files import quantise_file, write_model

        result = quantise_file(
            model,
            calibration,
            labels=labels,
            shapes=read_shapes(shape),
            values=read_values(value),
            channel_block=channel_block,
            search=search,
            kept=kept,
            least_decibels=min_db,
            borders=borders,
            images=_images(mean, scale, layout),
            counting=work.counter,
        )
        work.begin(f"checking {output}")
        write_model(result, output)
    if as_json:
        print_json(values_of(result), "quantization")
    else:
        print_result(result)
        for line in result.costs.warnings():
            say_text(line, err=True)
        say_text(f"{output}: any ONNX tool opens it; `hilt compile {output} -o FILE.hilt` makes a bundle of it")


def _images(mean: str, scale: str, layout: str) -> Images | None:
    """Return the images that the options describe, None without them. Raises BadParameter."""
    from hilt.network.images import Images

    if not (mean or scale or layout):
        return None
    if layout not in ("", "nhwc", "nchw"):
        raise typer.BadParameter(f"--layout {layout} is neither nhwc nor nchw")
    return Images(
        _numbers("mean", mean) or (0.0,), _numbers("scale", scale) or (1.0,), "nchw" if layout == "nchw" else "nhwc"
    )


def _numbers(option: str, text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(",")) if text else ()
    except ValueError as error:
        raise typer.BadParameter(f"--{option} {text} is no list of numbers such as 123.7,116.3,103.5") from error


def values_of(result: Quantisation) -> dict[str, Any]:
    """Return a result as plain values."""
    return {
        "layers": [asdict(layer) for layer in result.costs.layers],
        "outputs": [asdict(output) for output in result.costs.outputs],
        "signal_to_noise_db": result.costs.decibels,
        "samples": {"measured": result.costs.samples, "unseen": result.costs.unseen},
        "equalised": result.equalised,
        "centred": result.centred,
        "bordered": result.bordered,
        "channel_block": result.channel_block,
        "float": [asdict(node) for node in result.kept],
        "warnings": result.costs.warnings(),
        "agreement": asdict(result.agreement),
        "accuracy": None if result.accuracy is None else asdict(result.accuracy),
        "notes": list(result.notes),
    }


def _changes(result: Quantisation) -> Iterator[str]:
    """Yield a line for each way in which the network was changed to lose less."""
    if result.equalised:
        yield "channels were equalised: the float network computes the same with other weights"
    if result.centred:
        yield "tensors were centred: layers' biases take up a constant that is taken off their inputs"
    if result.channel_block:
        yield (
            f"blocks of {result.channel_block} output channels have weight scales of their own, for boards whose VTA "
            "has blocks of so many channels, or of a divisor"
        )
    if result.bordered:
        yield (
            f"{result.bordered} layers read a constant around their data in place of zeros, which takes VTA some per "
            "cent longer, and up to a fifth with depthwise layers"
        )


def print_result(result: Quantisation) -> None:
    """Print the loss by layer, and the other costs of quantising."""
    costs = result.costs
    listed = tables.table("layer", "operator", ">MMAC", ">scale", ">signal to noise")
    for layer in costs.layers:
        cells = (f"{layer.macs / 1e6:.2f}", f"2^{-layer.exponent}", f"{layer.decibels:.1f} dB")
        listed.add_row(layer.name, layer.op, *cells)
    tables.console().print(listed)
    for note in result.notes:
        say_text(note)
    for output in costs.outputs:
        say_text(f"output {output.name}: {output.decibels:.1f} dB above the error of quantising")
    kind = (
        "held-out samples" if costs.unseen else "samples that also fitted the scales; from eight on half are held out"
    )
    say_text(f"measured on {costs.samples} {kind}")
    if result.kept:
        say_text(_kept_text(result))
    for change in _changes(result):
        say_text(change)
    say_text(_agreement_text(result.agreement))
    if result.accuracy is not None:
        accuracy = result.accuracy
        say_text(
            f"accuracy on {accuracy.samples:,} samples: float {100 * accuracy.float_model:.2f} %, "
            f"quantised {100 * accuracy.quantised_model:.2f} %, integer reference {100 * accuracy.reference:.2f} %"
        )


def _agreement_text(agreement: Agreement) -> str:
    rounded = (
        f"{agreement.rounded:,} lie next to a middle behind a product in fixed point; " if agreement.rounded else ""
    )
    return (
        f"integer reference against ONNX Runtime: {100 * agreement.equal:.3f} % of {agreement.values:,} int8 values "
        f"equal; {agreement.ties:,} are ties, which VTA rounds up and ONNX to even; {rounded}"
        f"{agreement.unexplained:,} differ otherwise, by {agreement.largest} at most"
    )


def _kept_text(result: Quantisation) -> str:
    from hilt.network.core_speed import CORTEX_A9

    names, seconds = ", ".join(node.name for node in result.kept), sum(node.seconds for node in result.kept)
    macs = sum(node.macs for node in result.kept)
    share = 100 * macs / max(macs + sum(layer.macs for layer in result.costs.layers), 1)
    return (
        f"in float on the processor: {names}; {share:.1f} % of the multiply-accumulates, "
        f"about {1e3 * seconds:,.1f} ms on a {CORTEX_A9.name}"
    )
