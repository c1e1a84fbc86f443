"""The classic consumer-group protocol: the coordinator on the broker, and its clients."""
