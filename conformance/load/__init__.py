"""Whether a release of Kafka loads a log of `__consumer_offsets`, compacted or not (docs/load.md).

1. `partition` reads a partition's folder.
2. `meaning` turns its records into those of spec/GroupLoad.tla, group by group.
3. `compactions` follows a load along every log that the cleaner may make of a group's records.
4. `specification` and `classes` are the two judges; `judgement` asks both.
"""
