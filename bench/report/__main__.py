"""`python -m bench.report RUN.json`: writes `bench/RESULTS.md` and `bench/charts/`."""

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path

from bench.report.fields import UnreadableError
from bench.report.page import CHARTS, chart_files, page
from bench.report.run import Run, measured_again, read_own_run, read_run

BENCH = Path(__file__).parents[1]
PAGE, REMARKS = "RESULTS.md", "REMARKS.md"


def main() -> None:
    """Renders what the arguments say."""
    args = _arguments()
    if not args.no_charts and not find_spec("matplotlib"):
        sys.exit("matplotlib is missing: pip install -e '.[report]', or add --no-charts")
    try:
        run = read_run(args.run)
        for later in args.again:
            run = measured_again(run, read_run(later))
        own = read_own_run(args.own) if args.own else None
    except UnreadableError as error:
        sys.exit(f"cannot be rendered: {error}")
    remarks = args.directory / REMARKS
    target = args.directory / PAGE
    args.directory.mkdir(parents=True, exist_ok=True)
    target.write_text(page(run, own, remarks.read_text() if remarks.exists() else ""))
    print(f"written: {target}")
    if not args.no_charts:
        _draw(run, args.directory / CHARTS)


def _draw(run: Run, directory: Path) -> None:
    """Draws all charts, and removes those that no page shows any more."""
    from bench.report.drawing import draw  # matplotlib is wanted here and nowhere before

    directory.mkdir(exist_ok=True)
    charts = list(chart_files(run))
    for chart in charts:
        draw(chart, directory / chart.file)
        print(f"written: {directory / chart.file}")
    for old in set(directory.glob("*.png")) - {directory / chart.file for chart in charts}:
        old.unlink()
        print(f"removed: {old}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.report", description=__doc__)
    parser.add_argument("run", type=Path, metavar="RUN.json", help="of a run side by side")
    parser.add_argument(
        "--again",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="of some workloads, measured again later: they take the place of those in RUN.json",
    )
    parser.add_argument("--own", type=Path, metavar="FILE", help="the JSON of `python -m bench`")
    parser.add_argument("--no-charts", action="store_true", help="the page alone")
    parser.add_argument("--directory", type=Path, default=BENCH, help="instead of bench/")
    return parser.parse_args()


if __name__ == "__main__":
    main()
