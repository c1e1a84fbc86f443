"""Explains a failure: what each step changed, why a formula is false, as lines and as a drawing.

`behaviour.Behaviour` is what every failure is shown from. `changes`, `comparison`, `why` and `key`
exist once, for model checks, replay, audits, judges and inspections alike (docs/design/reports.md).
"""
