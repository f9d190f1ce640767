"""`make demo`: a year of flights is published, replayed, shared by groups, and outlives a kill.

Read `__main__` first. Beyond the data it needs only what any user has: the client, and
`logbroker.testing.running_broker`, which starts `logbroker serve` as a process.
"""
