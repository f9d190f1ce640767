"""What the demo shows: colours and moving bars on a terminal, plain lines everywhere else."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from demo.figures import Comparison, check

INDENT = "   "


class Screen:
    """Where the demo tells its story."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._section_count = 0

    def title(self, text: str) -> None:
        """Writes the first line."""
        self._print(text, "bold")

    def section(self, title: str) -> None:
        """Begins a numbered part."""
        self._section_count += 1
        self._print("")
        self._print(f"{self._section_count}. {title}", "bold cyan")

    def say(self, text: str = "") -> None:
        """Writes a line."""
        self._print(INDENT + text if text else "")

    def command(self, text: str) -> None:
        """Writes a command that the reader may want to type."""
        self._print(INDENT + INDENT + text, "green")

    def compare(self, comparisons: list[Comparison]) -> None:
        """Writes each total beside what it should be; FiguresDifferError if one is not."""
        width = max(len(each.what) for each in comparisons)
        for each in comparisons:
            verdict, style = ("ok     ", "green") if each.agrees else ("DIFFERS", "bold red")
            line = f"{verdict}  {each.what.ljust(width)}  {each.found:>9,}"
            if not each.agrees:
                line += f"  should be {each.expected:,}"
            self._print(INDENT + line, style)
        check(comparisons)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Writes rows under the names of their columns."""
        lines = [columns, *rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        for number, line in enumerate(lines):
            cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
            self._print(INDENT + "   ".join(cells).rstrip(), "" if number else "dim")

    @contextmanager
    def progress(self, what: str, total: int) -> Iterator[Callable[[int], None]]:
        """Shows how much of `total` is done; call what it yields with the count so far."""
        if not self._console.is_terminal:
            yield self._progress_in_lines(what, total)
            return
        columns = (
            TextColumn(INDENT + "{task.description}"),
            BarColumn(bar_width=40),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=self._console) as bar:
            task = bar.add_task(what, total=total)
            yield lambda done: bar.update(task, completed=done)

    def _progress_in_lines(self, what: str, total: int) -> Callable[[int], None]:
        quarters = iter([total // 4, total // 2, total * 3 // 4, total])
        following = next(quarters)

        def show(done: int) -> None:
            nonlocal following
            if done >= following:
                self.say(f"{what}: {done:,} of {total:,}")
                following = next((mark for mark in quarters if mark > done), total + 1)

        return show

    def _print(self, text: str, style: str = "") -> None:
        self._console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


class ClientLog:
    """Has what the client logs told as part of the story; for `structlog.configure`."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def warning(self, text: str) -> None:
        """Writes a line of the client's log."""
        self._screen.say(f"the client says: {text}")

    info = debug = error = critical = exception = warning


def rate(record_count: int, size_bytes: int, seconds: float) -> str:
    """Returns how much was moved, how long that took, and how fast that is."""
    return (
        f"{record_count:,} records, {size_bytes / 1e6:,.1f} MB in {seconds:.1f} s: "
        f"{record_count / seconds:,.0f} records/s, {size_bytes / 1e6 / seconds:.1f} MB/s"
    )
