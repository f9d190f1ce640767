"""What the client logs never lands in the output of the program that uses it."""

import structlog

from logbroker.client.logs import ClientLog


def test_without_any_set_up_events_go_to_the_standard_logging_and_nothing_to_stdout(
    capsys, caplog, monkeypatch
):
    monkeypatch.setattr(structlog, "is_configured", lambda: False)
    log = ClientLog("a program's first logger")
    log.debug("tiny")
    log.info("small")
    log.warning("broker lost", target="a:1")
    assert capsys.readouterr().out == ""
    assert caplog.messages == ["broker lost target='a:1'"]


def test_a_program_that_configured_structlog_gets_the_events_there(monkeypatch):
    monkeypatch.setattr(structlog, "is_configured", lambda: True)
    with structlog.testing.capture_logs() as logs:
        ClientLog("somewhere").warning("broker lost", target="a:1")
    assert logs == [{"event": "broker lost", "log_level": "warning", "target": "a:1"}]
