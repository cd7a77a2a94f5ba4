"""Data for the networks: photographs of scikit-learn, rendered text, synthetic sound, this project's files."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Made = dict[str, Array]

COUNT = 64
"""Samples: the first half calibrates, the second is compared."""
_WORDS = ("invoice", "total", "delivery", "address", "street", "order", "amount", "due", "date", "phone", "reference")


@cache
def _photographs() -> list[Array]:
    from sklearn.datasets import load_sample_images

    return [np.asarray(image) for image in load_sample_images().images]


def crops(height: int, width: int, seed: int = 0, count: int = COUNT) -> Array:
    """Return crops of photographs (n, height, width, 3), uint8: random places, sizes, brightness, mirrored or not."""
    from PIL import Image

    random, made = np.random.default_rng(seed), []
    for number in range(count):
        photograph = _photographs()[number % 2]
        share = random.uniform(0.25, 1)
        rows = int(min(photograph.shape[0], photograph.shape[1] * height / width) * share)
        columns = max(int(rows * width / height), 1)
        top = random.integers(0, photograph.shape[0] - rows + 1)
        left = random.integers(0, max(photograph.shape[1] - columns, 0) + 1)
        part = Image.fromarray(photograph[top : top + rows, left : left + columns]).resize((width, height))
        image = np.asarray(part)[:, :: random.choice([-1, 1])] * random.uniform(0.6, 1.1)
        made.append(np.clip(image, 0, 255).astype(np.uint8))
    return np.stack(made)


def lines(height: int, width: int, seed: int = 1, turned: bool = False) -> Array:
    """Return rendered lines of text (n, height, width, 3), uint8; every second one upside down if `turned`."""
    random, made = np.random.default_rng(seed), []
    for number in range(COUNT):
        image = _text(random, height, width, 1)
        made.append(image[::-1, ::-1] if turned and number % 2 else image)
    return np.stack(made)


def pages(height: int, width: int, seed: int = 2) -> Array:
    """Return photographs and pages of text in turn (n, height, width, 3), uint8."""
    random, images = np.random.default_rng(seed), crops(height, width, seed).copy()
    for number in range(1, COUNT, 2):
        images[number] = _text(random, height, width, int(random.integers(4, 14)))
    return images


def _text(random: np.random.Generator, height: int, width: int, rows: int) -> Array:
    from PIL import Image, ImageDraw, ImageFont

    paper, ink = int(random.integers(170, 256)), int(random.integers(0, 90))
    image = Image.new("RGB", (width, height), (paper, paper, int(paper * 0.95)))
    draw, step = ImageDraw.Draw(image), height / rows
    font = ImageFont.load_default(max(int(step * random.uniform(0.5, 0.75)), 8))
    for row in range(rows):
        words = " ".join(str(word) for word in random.choice(_WORDS, random.integers(1, 5)))
        text = f"{words} {random.integers(10, 99999)}"
        draw.text((int(random.integers(2, 12)), int(row * step + step * 0.1)), text, fill=(ink,) * 3, font=font)
    noisy = np.asarray(image) + random.normal(0, 6, (height, width, 3))
    return np.clip(noisy, 0, 255).astype(np.uint8)


def normalised(images: Array, mean: tuple[float, ...], deviation: tuple[float, ...], *, last: bool = False) -> Array:
    """Return images (n, 3, h, w), or (n, h, w, 3) if `last`, as (x / 255 - mean) / deviation in float32."""
    made = ((images / 255 - np.array(mean)) / np.array(deviation)).astype(np.float32)
    return made if last else np.ascontiguousarray(made.transpose(0, 3, 1, 2))


def grey(images: Array) -> Array:
    """Return images (n, 1, h, w) in float32, from 0 to 1."""
    return (images.mean(axis=3) / 255).astype(np.float32)[:, None]


def notes(samples: int = 43844, rate: int = 22050) -> Array:
    """Return sounds of one to three notes with their overtones (n, samples, 1)."""
    made = []
    for seed in range(COUNT):
        random, time = np.random.default_rng(seed), np.arange(samples) / rate
        sound = random.normal(0, 0.003, samples)
        for _ in range(random.integers(1, 4)):
            pitch, start = 440 * 2 ** (random.integers(-24, 24) / 12), random.uniform(0, 1.5)
            decay = (time > start) * np.exp(-3 * np.maximum(time - start, 0))
            for overtone in range(1, 6):
                sound += decay * np.sin(2 * np.pi * pitch * overtone * time) / overtone ** random.uniform(1, 2)
        made.append(sound / np.abs(sound).max() * random.uniform(0.1, 0.9))
    return np.stack(made).astype(np.float32)[:, :, None]


def voice(seed: int, seconds: int = 3, rate: int = 16000) -> Array:
    """Return a synthetic voice with pauses: a pitch, three formants, noise."""
    random, time = np.random.default_rng(seed), np.arange(seconds * rate) / rate
    pitch = random.uniform(90, 220) * (1 + 0.1 * np.sin(2 * np.pi * random.uniform(1, 4) * time))
    phase = 2 * np.pi * np.cumsum(pitch) / rate
    formants = (random.uniform(300, 800), random.uniform(900, 2300), random.uniform(2300, 3000))
    sound = sum(
        np.sin(number * phase) * sum(1 / (1 + ((number * 150 - formant) / 120) ** 2) for formant in formants)
        for number in range(1, 22)
    )
    gate = (np.sin(2 * np.pi * random.uniform(0.5, 2) * time + random.uniform(0, 6)) > -0.2) * 1.0
    gate *= 0.5 + 0.5 * np.sin(8 * np.pi * time)
    sound = sound / np.abs(sound).max() * random.uniform(0.05, 0.6) * gate
    return (sound + random.normal(0, random.uniform(0.0005, 0.02), len(time))).astype(np.float32)


def frames(run: Callable[[Made], Made], states: dict[str, tuple[str, tuple[int, ...]]], context: int = 64) -> Made:
    """Return frames of voices and the states in front of them, as the float model `run` reaches them.

    Args:
        run: Returns the outputs of one inference.
        states: By input: the output that becomes it, and its shape.
        context: Values of the last frame in front of each.
    """
    found: dict[str, list[Array]] = {name: [] for name in ("input", *states)}
    for seed in range(8):
        sound, state = voice(seed), {name: np.zeros(shape, np.float32) for name, (_, shape) in states.items()}
        before = np.zeros(context, np.float32)
        for start in range(0, len(sound) - 511, 512):
            frame = np.concatenate([before, sound[start : start + 512]])
            before = frame[-context:]
            feeds = {"input": frame[None], **state}
            for name, value in feeds.items():
                found[name].append(value)
            outputs = run(feeds)
            state = {name: outputs[output] for name, (output, _) in states.items()}
    places = np.random.default_rng(0).permutation(len(found["input"]))[:COUNT]
    return {name: np.stack([values[place] for place in places]) for name, values in found.items()}


def files(folder: Path) -> Array:
    """Return beginnings and ends of this project's files as magika reads them (n, 2048), int32."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size > 1024)
    random, made = np.random.default_rng(0), []
    for place in random.permutation(len(paths))[:COUNT]:
        data = paths[place].read_bytes()
        row = np.full(2048, 256, np.int32)
        first, last = data.lstrip()[:1024], data.rstrip()[-1024:]
        row[: len(first)] = np.frombuffer(first, np.uint8)
        row[2048 - len(last) :] = np.frombuffer(last, np.uint8)
        made.append(row)
    return np.stack(made)


def machine_frames() -> Array:
    """Return logarithmic spectra of five frames of a humming machine (n, 640), in decibels."""
    made = []
    for seed in range(COUNT):
        random = np.random.default_rng(seed)
        tilt = -20 - 25 * np.linspace(0, 1, 128) + random.normal(0, 2)
        hum = sum(18 * np.exp(-(((np.arange(128) - place) / 2) ** 2)) for place in random.integers(2, 100, 5))
        made.append((np.tile(tilt + hum, 5) + random.normal(0, 2.5, 640)).astype(np.float32))
    return np.stack(made)
