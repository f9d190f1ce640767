"""What the broker says while it works: lines on stderr, for people or as JSON.

2026-07-01T12:00:00.000Z info  listening address=127.0.0.1:9470 data_dir=/var/lib/logbroker
{"address": "127.0.0.1:9470", ..., "event": "listening", "level": "info", "timestamp": ...}
"""

import json
import logging
import sys
from enum import StrEnum

import structlog
from structlog.typing import EventDict, WrappedLogger

from logbroker.cli.text import safe

TIMESTAMP = structlog.processors.TimeStamper(fmt="%Y-%m-%dT%H:%M:%S.%fZ", utc=True)


NOISE = ("ExecuteBatchError", "PollerCompletionQueue._handle_events")
"""What gRPC reports, with a traceback, when a client leaves, and after an event loop's end."""


class LogLevel(StrEnum):
    """From which level on lines are written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogLines:
    """Writes lines to whatever stderr is at that moment."""

    def msg(self, message: str) -> None:
        """Writes one line."""
        sys.stderr.write(message + "\n")
        sys.stderr.flush()

    log = debug = info = warning = error = critical = exception = msg


class LibraryLog(logging.Handler):
    """Takes what libraries log and writes it as our own lines, with the logger's name."""

    def emit(self, record: logging.LogRecord) -> None:
        """Writes one record, unless it is gRPC's noise."""
        message = record.getMessage()
        kind = record.exc_info[0] if record.exc_info else None
        if (kind is not None and kind.__name__ in NOISE) or any(each in message for each in NOISE):
            return
        structlog.get_logger().log(
            record.levelno, message, logger=record.name, exc_info=record.exc_info
        )


def configure_log(level: LogLevel, *, as_json: bool) -> None:
    """Sends what is logged, by us and (from warnings on) by libraries, to stderr."""
    number = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            TIMESTAMP,
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer() if as_json else line_of,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=lambda *_: LogLines(),
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(level=logging.WARNING, handlers=[LibraryLog()], force=True)


def line_of(_: WrappedLogger, __: str, event: EventDict) -> str:
    """Returns the event as a line; a traceback follows on lines of its own."""
    time, level, text = event.pop("timestamp"), event.pop("level"), event.pop("event")
    trace = event.pop("exception", "")
    fields = [f"{name}={_value(value)}" for name, value in event.items()]
    line = safe(" ".join([f"{time[:-4]}Z", f"{level:<7}", str(text), *fields]))
    return "\n".join([line, *map(safe, trace.splitlines())])


def _value(value: object) -> str:
    text = str(value)
    return text if text and not set(text) & set(' "=\n') else json.dumps(text, ensure_ascii=False)
