"""The stages of a run, each with its events: what commands call one by one and the gate in turn."""
