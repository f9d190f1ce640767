"""What tests of logbroker, and of code that uses it, need: shipped with the package."""
