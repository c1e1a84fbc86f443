"""The group protocol as bytes: Kafka's frames, the messages in them, a server and its clients."""
