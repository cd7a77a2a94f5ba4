"""`python -m tests.onnx_suite`: ONNX's own backend tests through hilt, with the refusals by operator."""

from __future__ import annotations

import argparse
import logging
import re
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from itertools import islice

import onnxruntime

from tests.onnx_suite.cases import cases
from tests.onnx_suite.pipeline import Ended, Verdict, run

_POOR = 10.0
"""Decibels below which a case is listed: inputs like 10,000 in a Softmax are lost in int8."""


def _quiet() -> None:
    logging.disable()
    onnxruntime.set_default_logger_severity(4)


def _one(number: int, jobs: int, name: str, most: int) -> list[tuple[str, str, str, Ended]]:
    found = []
    for case in islice(cases(), number, most or None, jobs):
        if re.search(name, case.name):
            found.append((case.name, case.variant, case.operator, run(case)))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", default="", help="only tests whose name has this regular expression")
    parser.add_argument("--most", type=int, default=0, help="only the first so many cases")
    parser.add_argument("--reasons", action="store_true", help="print the reason of each refusal")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    started = time.monotonic()
    with ProcessPoolExecutor(given.jobs, initializer=_quiet) as pool:
        parts = [pool.submit(_one, number, given.jobs, given.name, given.most) for number in range(given.jobs)]
        rows = sorted(row for part in parts for row in part.result())
    verdicts = Counter(ended.verdict for *_, ended in rows)
    print(", ".join(f"{verdicts[verdict]} {verdict}" for verdict in Verdict), f"of {len(rows)} cases")
    print(
        f"{sum(ended.on_vta > 0 for *_, ended in rows)} cases with a layer on VTA; {time.monotonic() - started:.0f} s"
    )
    refused = Counter(operator for _, _, operator, ended in rows if ended.verdict is Verdict.REFUSED)
    print("refused:", ", ".join(f"{operator} {count}" for operator, count in refused.most_common()))
    for name, variant, _, ended in rows:
        if ended.verdict is Verdict.RUN and ended.decibels < _POOR:
            print(f"{name} ({variant}): {ended.decibels:.1f} dB against the float model")
        if given.reasons and ended.verdict is Verdict.REFUSED:
            print(f"refused: {name} ({variant}): {ended.reason}")
        if ended.verdict in (Verdict.WRONG, Verdict.FAULT):
            print(f"{ended.verdict}: {name} ({variant}): {ended.reason}")
    return 1 if verdicts[Verdict.WRONG] or verdicts[Verdict.FAULT] else 0


if __name__ == "__main__":
    sys.exit(main())
