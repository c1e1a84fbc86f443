"""KIP-848's group coordinator: a shard whose memory is what its records load.

Source: org.apache.kafka.coordinator.group, branch 4.4. Regular expressions, members of the classic
protocol and racks are not here.
"""
