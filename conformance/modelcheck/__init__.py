"""Runs TLC on models, reads its verdicts and its state graphs; knows no protocol."""
