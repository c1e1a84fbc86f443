"""Looks for a behaviour of the specification that explains what was seen; knows no protocol.

    events (NDJSON) --mapping--> Recording --order--> partial order --search--> verdict

`pass` comes with an explanation, `fail` means that an exhaustive search within the declared bounds
found none, and everything else is `inconclusive` with what would decide it. docs/mapping.md is the
user's page, docs/design/judging.md describes the searches.
"""
