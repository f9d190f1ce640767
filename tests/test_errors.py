"""The errors, their reasons and error.proto say the same."""

import ast
import inspect
import pickle
import re
from pathlib import Path

import pytest

from logbroker import errors
from logbroker.errors import REASONS, LogbrokerError, OutcomeUnknownError
from logbroker.v1.error_pb2 import Reason
from logbroker.wire.status import CODE

ROOT = Path(__file__).parent.parent
KINDS = [
    kind
    for kind in vars(errors).values()
    if inspect.isclass(kind) and issubclass(kind, LogbrokerError) and kind is not LogbrokerError
]
OF_CLIENTS = {OutcomeUnknownError}


def test_the_proto_lists_the_same_reasons():
    listed = {name.removeprefix("REASON_") for name in Reason.keys()} - {"UNSPECIFIED"}  # noqa: SIM118
    assert listed == set(REASONS)


def test_the_proto_says_the_same_of_each_reason():
    text = (ROOT / "proto/logbroker/v1/error.proto").read_text(encoding="utf-8")
    found = re.findall(r"// (.+) \((.+)\)\n  REASON_(\w+) =", text)
    expected = [
        (meaning, CODE[kind].name if kind in CODE else "of clients alone", reason)
        for reason, (kind, meaning) in REASONS.items()
    ]
    assert found == expected


def test_the_tree_in_the_docstring_shows_every_reason_below_its_error():
    found: dict[str, str] = {}
    kind = ""
    for line in (errors.__doc__ or "").splitlines():
        if start := re.match(r"    +(\w+Error) ", line):
            kind = start[1]
        if kind:
            found |= dict.fromkeys(re.findall(r"\b[A-Z]+(?:_[A-Z]+)*\b", line), kind)
        if not line.strip():
            kind = ""
    for reason, (error, _) in REASONS.items():
        assert found.get(reason) == error.__name__, reason


def test_every_reason_in_the_code_is_a_listed_one_and_raised_by_its_error():
    names = {kind.__name__: kind for kind in KINDS}
    for module in sorted((ROOT / "logbroker").rglob("*.py")):
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(
                    func=ast.Name(id=str(name)) | ast.Attribute(attr=str(name)),
                    args=[ast.Constant(value=str(reason)), *_],
                ) if name in names:
                    where = f"{module}:{node.lineno}"
                    assert reason in REASONS, f"{where}: {reason}"
                    assert REASONS[reason][0] is names[name], f"{where}: {name}, {reason}"


def test_every_error_has_a_status_of_its_own_or_belongs_to_clients():
    assert set(CODE) == set(KINDS) - OF_CLIENTS
    assert len(set(CODE.values())) == len(CODE)


def test_what_may_be_tried_again_and_what_had_no_effect():
    assert {kind for kind in KINDS if kind.may_retry} == {
        errors.ExhaustedError,
        errors.UnavailableError,
    }
    assert {kind for kind in KINDS if not kind.no_effect} == {
        errors.UnavailableError,
        errors.InternalError,
        errors.OutcomeUnknownError,
    }


@pytest.mark.parametrize("kind", KINDS)
def test_every_error_survives_pickling_and_raising_again(kind):
    error = kind("SOME_REASON", "what happened", reason=1, message="two", self="three")
    for copy in (pickle.loads(pickle.dumps(error)), error.again()):
        assert type(copy) is kind
        assert (copy.reason, str(copy)) == ("SOME_REASON", "what happened")
        assert copy.details == {"reason": "1", "message": "two", "self": "three"}
