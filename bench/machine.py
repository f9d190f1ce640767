"""What the numbers were measured on."""

import os
import platform
from pathlib import Path

import grpc


def machine() -> str:
    """Returns processor, cores, memory, system and the versions of what runs us."""
    return ", ".join(
        [
            f"{os.cpu_count()} CPUs ({_processor()})",
            f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / (1 << 30):.0f} GiB",
            f"{platform.system()} {platform.release()}",
            f"Python {platform.python_version()}",
            f"grpcio {grpc.__version__}",
        ]
    )


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()
