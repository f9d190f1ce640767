"""Imports point down the picture, and few parts know what is not ours."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "logbroker"
GROUND = {"errors", "limits", "clock"}
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(), "limits": set(), "clock": set(), "v1": set(), "malloc": {"clock"},
    "config": {"errors", "limits"},
    "record": GROUND | {"config", "v1"},  # v1: columns.py, the batch codec
    "topic": GROUND | {"record", "config"},
    "group": GROUND | {"record", "config"},
    "storage": GROUND | {"record", "config"},
    "broker": GROUND | {"record", "config", "topic", "group", "storage"},
    "wire": GROUND | {"record", "config", "topic", "group", "v1"},
    "server": GROUND | {"record", "config", "topic", "group", "broker", "wire", "v1"},
    "client": GROUND | {"record", "config", "topic", "group", "wire", "v1"},
    "app": GROUND | {"config", "malloc", "storage", "broker", "server"},
    "cli": GROUND | {"record", "config", "topic", "group", "storage", "client", "app"},
}  # fmt: skip
STORAGE_SEEN_BY_BROKER = {"logbroker.storage.engine", "logbroker.storage.journal"}
ONLY = {  # outside names, and who may know them
    "grpc": {"wire", "server", "client"},
    "grpc_status": {"wire"},
    "google": {"record", "wire", "server", "client"},  # record: columns.py
    "time": {"clock"},
    "datetime": {"cli"},
    "fcntl": {"storage"},
    "typer": {"cli"},
    "rich": {"cli"},
    "uvloop": {"app", "client"},
}
ONLY_COLUMNS = ("logbroker.v1", "google")
FREE = {"__init__", "__main__", "testing", "v1"}


def test_imports_point_downwards():
    for module, part, name in imports():
        assert part in MAY_IMPORT, f"{part} has no place in the picture"
        first, second = f"{name}.".split(".")[:2]
        is_ours = first == "logbroker" and second in MAY_IMPORT[part] | {part}
        is_free = first != "logbroker" and part in ONLY.get(first, {part})
        assert is_ours or is_free, f"{module} imports {name}"


def test_the_broker_knows_storage_by_its_verbs_and_its_journal_alone():
    for module, part, name in imports():
        if part == "broker" and name.startswith("logbroker.storage"):
            assert name in STORAGE_SEEN_BY_BROKER, f"{module} imports {name}"


def test_of_the_records_only_the_columns_know_protobuf():
    for module, part, name in imports():
        if part == "record" and name.startswith(ONLY_COLUMNS):
            assert module.name == "columns.py", f"{module} imports {name}"


def imports():
    """Yields each import of the package: its module, the part that is in, and what it names."""
    for module in sorted(PACKAGE.rglob("*.py")):
        part = module.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if part not in FREE:
            for name in names_in(module):
                yield module, part, name


def names_in(module: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        match node:
            case ast.ImportFrom(module="logbroker", names=aliases):
                names.update(f"logbroker.{alias.name}" for alias in aliases)
            case ast.ImportFrom(module=str(name), level=0):
                names.add(name)
            case ast.Import(names=aliases):
                names.update(alias.name for alias in aliases)
    return names
