"""logbroker/v1 is what `make proto` makes of proto/."""

from pathlib import Path

from grpc_tools import protoc

ROOT = Path(__file__).parent.parent


def test_generated_code_is_fresh(tmp_path):
    protos = sorted(str(path) for path in (ROOT / "proto").rglob("*.proto"))
    outputs = [f"--{kind}_out={tmp_path}" for kind in ("python", "pyi", "grpc_python")]
    assert protoc.main(["protoc", f"--proto_path={ROOT / 'proto'}", *outputs, *protos]) == 0
    fresh = {path.name: path.read_text() for path in (tmp_path / "logbroker/v1").iterdir()}
    committed = {path.name: path.read_text() for path in (ROOT / "logbroker/v1").glob("*_pb2*")}
    assert committed == fresh, "run `make proto`"


def test_every_message_field_method_and_value_has_a_comment():
    for path in sorted((ROOT / "proto").rglob("*.proto")):
        above = ""
        for line in path.read_text(encoding="utf-8").splitlines():
            said = line.strip()
            is_named = said.endswith((";", "{", "{}")) and not said.startswith(
                ("//", "syntax", "package", "import", "reserved")
            )
            assert not is_named or above.startswith("//"), f"{path.name}: {said}"
            above = said
