"""Whether a release of Kafka loads a log of a coordinator, compacted or not (docs/load.md).

1. `partition` reads a partition's folder.
2. `topics` names the internal topics; `meaning`, `transaction_state` and `share_state` turn their
   records into those of a specification, unit by unit (`units`).
3. `compactions` and `pruning` follow a load along every log that may be left of a unit's records.
4. `specification` and `classes` are the two judges; `judgement` asks both.
"""
