"""Apache Kafka's artefacts and formats: its jars, its messages, its brokers on this machine."""
