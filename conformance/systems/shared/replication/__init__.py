"""Of spec/Replication.tla: the controller double, the fetcher's loop, what is seen of brokers."""
