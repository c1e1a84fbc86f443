"""kconform: one TLA+ text is model-checked, generates the tests and judges the traces."""

__version__ = "0.1.0"
