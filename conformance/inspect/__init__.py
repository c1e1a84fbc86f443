"""What brokers' data directories and logs prove: evidence is read into tables, then judged."""
