"""Generated from proto/logbroker/v1 by `make proto`; never edited."""
