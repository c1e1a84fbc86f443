"""What every adapter of Transactions.tla has in common."""
