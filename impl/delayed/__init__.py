"""Requests that wait at a broker: for bytes, for replicas, for deletions, for topics."""
