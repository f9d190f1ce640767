"""All commands but `serve`: those that talk to a broker, and `log`, which reads its files."""

import typer

from logbroker.cli import broker, consume, dead_letter, explain, fetch, group, log, produce, topic


def add_to(app: typer.Typer) -> None:
    """Adds them, in the order of the help."""
    app.add_typer(topic.app, name="topic")
    app.command()(produce.produce)
    app.command()(fetch.fetch)
    app.add_typer(group.app, name="group")
    app.command()(consume.consume)
    app.add_typer(dead_letter.app, name="dlq")
    app.command()(explain.explain)
    app.add_typer(broker.app, name="broker")
    app.add_typer(log.app, name="log")
