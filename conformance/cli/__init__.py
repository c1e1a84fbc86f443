"""The command line: one module per command, which parses options, calls a stage and exits."""
