"""RabbitMQ: one node, with the stream plugin, on the loopback alone."""

from pathlib import Path

from bench.peers.fetched import missing_packages, missing_programs, package_versions, program
from bench.peers.server import LOOPBACK, ServerProcess, ports_of
from bench.peers.system import Level, Missing

SCRIPT = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
"""What the packaged wrapper runs, which would change to a user that owns no temporary directory."""
LIBRARY, LIBRARY_NAME = Path("/usr/lib/rabbitmq/lib"), "rabbitmq_server-"
APT = "apt install rabbitmq-server"
CONFIG = """\
listeners.tcp.1 = 127.0.0.1:{amqp}
stream.listeners.tcp.1 = 127.0.0.1:{stream}
stream.advertised_host = 127.0.0.1
stream.advertised_port = {stream}
log.console = true
log.console.level = warning
log.file = false
"""


def server(directory: Path, _: Level) -> ServerProcess:
    """Makes a server: durability is a matter of the kind of queue."""
    amqp, stream, distribution, epmd = ports_of(directory, "amqp", "stream", "dist", "epmd")
    config = directory / "rabbitmq.conf"
    config.write_text(CONFIG.format(amqp=amqp, stream=stream))
    plugins = directory / "enabled_plugins"
    plugins.write_text("[rabbitmq_stream].\n")
    environ = {
        "HOME": str(directory),  # of the cookie
        "detached": "true",  # the Erlang machine takes the place of the script
        "RABBITMQ_NODENAME": "bench@localhost",
        "RABBITMQ_MNESIA_BASE": str(directory / "data"),
        "RABBITMQ_LOG_BASE": str(directory / "log"),
        "RABBITMQ_CONFIG_FILE": str(config),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(plugins),
        "RABBITMQ_DIST_PORT": str(distribution),
        # Of every Erlang machine: the server starts a second one for a moment, to find an epmd.
        "ERL_AFLAGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        "ERL_EPMD_PORT": str(epmd),
        "ERL_EPMD_ADDRESS": LOOPBACK,
    }
    return ServerProcess(
        directory,
        [str(SCRIPT)],
        address=f"{LOOPBACK}:{amqp}:{stream}",
        ports=[amqp, stream],
        environ=environ,
        companion=[str(program("epmd"))],
    )


def missing(*clients: str) -> list[Missing]:
    """Returns what is not installed."""
    script = [] if SCRIPT.exists() else [Missing(f"program {SCRIPT}", APT)]
    return [*script, *missing_programs("epmd", how=APT), *missing_packages(*clients)]


def versions(*clients: str) -> dict[str, str]:
    """Returns the versions of the server and of a client.

    The server's is read from its directory: `rabbitmqctl` would leave an epmd behind that
    listens to the whole network.
    """
    (directory,) = LIBRARY.glob(f"{LIBRARY_NAME}*")
    return {"RabbitMQ": directory.name.removeprefix(LIBRARY_NAME), **package_versions(*clients)}
