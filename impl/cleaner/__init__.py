"""The log cleaner: keeps of each key of a compacted log the last record (LogCleaner)."""
