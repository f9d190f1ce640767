"""What the samples and the account of a soak say: figures, and what is wrong. Pure."""

from dataclasses import asdict, dataclass
from typing import Any

from .account import Account
from .growth import Growth, Slower, growth_of, percentile, slower
from .samples import Samples
from .sizes import MIB, Sizes

SERIES = {"RSS": "rss_bytes", "open files": "open_files", "threads": "threads"}


@dataclass(frozen=True, slots=True)
class Row:
    """A quantity, over the whole soak."""

    name: str
    first: float
    last: float
    least: float
    greatest: float
    growth: Growth


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a soak went."""

    rows: list[Row]
    latencies: dict[str, Slower]
    p50_ms: float
    p99_ms: float
    cpu_share: float
    """Of one core, all the time."""
    faults: list[str]

    def to_json(self) -> dict[str, Any]:
        """Returns plain values."""
        return asdict(self)


def verdict_of(samples: Samples, account: Account, sizes: Sizes) -> Verdict:
    """Judges."""
    taken, faults = samples.taken, list(samples.errors)
    times = [one.at_s for one in taken]
    rows = []
    for name, attribute in SERIES.items():
        values = [float(getattr(one, attribute)) for one in taken]
        growth = growth_of(times, values, sizes.bounds[name])
        rows.append(Row(name, values[0], values[-1], min(values), max(values), growth))
        if growth.is_growth:
            faults.append(_grew(name, growth))
    latencies = {}
    series = {
        "a publish": [one.latency_ms for one in taken],
        "the event loop": samples.loop_lags_ms,
    }
    for name, values in series.items():
        found = slower(values, factor=sizes.latency_factor, least=sizes.least_latency_ms)
        latencies[name] = found
        if found.is_slower:
            change = f"p99 {found.first_p99:.0f} ms in the first quarter"
            faults.append(f"{name} became slow: {change}, {found.last_p99:.0f} ms in the last")
    publishes, seconds = series["a publish"], times[-1] - times[0]
    return Verdict(
        rows=rows,
        latencies=latencies,
        p50_ms=percentile(publishes, 50),
        p99_ms=percentile(publishes, 99),
        cpu_share=(taken[-1].cpu_s - taken[0].cpu_s) / seconds if seconds else 0,
        faults=faults + account.faults(),
    )


def shown(name: str, value: float) -> str:
    """Returns a value as people read it."""
    return f"{value / MIB:.1f} MiB" if name == "RSS" else f"{value:.1f}".removesuffix(".0")


def _grew(name: str, growth: Growth) -> str:
    amount, per_hour = shown(name, growth.amount), shown(name, growth.per_hour)
    allowed = shown(name, growth.allowed)
    return f"{name} grew: {amount} in the second half ({per_hour} an hour), allowed are {allowed}"
