"""The models whose formulas are asked of brokers' files."""

REPLICATION = "replication/files-2b"
CLASSIC_GROUP = "group/files-2m"
CONSUMER_GROUP = "consumer/files-2m"
