"""The runtime of Kafka 4's coordinators, and a shard that stores values by key.

Source: org.apache.kafka.coordinator.common.runtime and org.apache.kafka.timeline, branch 4.4.
"""
