"""Judges histories of clients: what they sent, read and committed, by the specification's rules.

    files --blocks--> rows, by partition --> situations, each distinct one once --> findings

1. A block of lines becomes rows: one for each value sent or read and each position (`rows`).
2. The rows of a partition are grouped into *situations*: all that is known of one value, of one
   offset, of one step of a reader. Offsets and names do not matter, only their order and whether
   they are the same. So millions of operations have a few dozen distinct situations (`situations`).
   A long partition is grouped piece by piece, so no more than a piece is in memory (`partition`).
3. The formulas of spec/ClientHistory.tla are evaluated on each distinct situation once (`rules`).
4. Transactions are followed across partitions (`across`).

Nothing of the specification is written a second time here: this package chooses what is asked
together. docs/history.md is the user's page.
"""
