"""Runs TLC on models, reads its verdicts and its state graphs; knows no protocol.

    find_models(names) -> models          manifest.Model: a TOML file of models/
    check(model, ...) -> CheckResult      TLC's verdict, and why a formula is false
    state_graph(model) -> StateGraph      lossless, cached by the hash of spec, model and jar

`StateGraph` has `variables`, `states`, `initial: int32[]`, `actions`, and the edges
`source, target, action: int32[edges]`, sorted by source with `offsets: int64[states + 1]`. It is a
multigraph: edges that differ only by action are kept. docs/design/model-checking.md has the rest.
"""
