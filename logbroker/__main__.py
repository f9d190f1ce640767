"""`python -m logbroker` is the command `logbroker`."""

from logbroker.cli.main import main

if __name__ == "__main__":
    main()
