"""TLA+ in Python: reads modules, evaluates formulas and finds successors; knows no Kafka."""
