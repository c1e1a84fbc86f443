"""Kafka's replication protocol in Python: time, network, locks and disk are constructor arguments.

The baseline is Kafka 3.8. Classes and methods keep Kafka's names, in snake_case for methods.
This package knows nothing of specifications, traces or tests.
"""

import logging

# Whoever runs this code says where its log goes; until then it goes nowhere.
logging.getLogger(__name__).addHandler(logging.NullHandler())
