"""Where the client's log goes: never to the standard output of the program that uses it.

A program that has configured structlog gets events there. Any other gets them through the
standard library's `logging`, as the logger of the module: without any set-up, warnings and
errors on stderr.
"""

import logging
from typing import Any

import structlog


class ClientLog:
    """A logger of one module: a constant event, values as fields."""

    def __init__(self, module: str) -> None:
        self._module = module

    def debug(self, event: str, **fields: Any) -> None:
        """Logs what only somebody who looks for a fault wants to know."""
        self._log(logging.DEBUG, event, fields)

    def info(self, event: str, **fields: Any) -> None:
        """Logs what is as it should be."""
        self._log(logging.INFO, event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        """Logs what somebody should know."""
        self._log(logging.WARNING, event, fields)

    def error(self, event: str, **fields: Any) -> None:
        """Logs what somebody should do something about."""
        self._log(logging.ERROR, event, fields)

    def _log(self, level: int, event: str, fields: dict[str, Any]) -> None:
        if structlog.is_configured():
            structlog.get_logger(self._module).log(level, event, **fields)
            return
        logger = logging.getLogger(self._module)
        if logger.isEnabledFor(level):
            fault = fields.pop("exc_info", None)
            named = "".join(f" {name}={value!r}" for name, value in fields.items())
            logger.log(level, "%s%s", event, named, exc_info=fault)
