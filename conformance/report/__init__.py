"""Turns typed events into the terminal's lines, JSON, JUnit and HTML; reads nothing but events.

`collect.Report` holds the events of a run. Each format is a module with `dumps(report)`; `files`
writes them. docs/report.md describes the page, docs/json.md the JSON.
"""
