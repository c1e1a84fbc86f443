"""What a partition remembers of its producers: sequences, epochs, the last batches.

Source: org.apache.kafka.storage.internals.log, branch 4.4. Transactions are not here yet: there are
no markers, and no verification.
"""
