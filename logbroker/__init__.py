"""logbroker: a log-structured streaming broker that is also a dependable work queue."""

__all__: list[str] = []
