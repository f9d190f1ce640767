"""Consumer groups: ledgers, orders, retries, dead letters, redrives. Pure."""
