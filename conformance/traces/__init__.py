"""Recorded traces: their model, the Parquet store, import and export; knows no protocol.

A `Trace` is an initial state and steps of action and state; a `PartialState` has None where nothing
was observed. A store is a folder: `manifest.json`, `states/*.parquet` (fingerprint and one typed
column per variable), `traces/*.parquet` (id, seed, n + 1 state fingerprints, n action codes, why it
ended, problem, source). docs/traces.md is the user's page.
"""
