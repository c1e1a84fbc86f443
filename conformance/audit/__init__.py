"""Judges a trace store: refinement, invariants, properties, accounting, coverage.

The audit is a few functions from Arrow tables to Arrow tables. `Workers` call them for a store's
files, here, in processes or on Spark; what comes back is about what is distinct, and small.

    files of traces --distinct_visits--> visits --asked, slices--> VisitJudge ---+
    files of states -------------------------------StateJudge--------------------+--> suspects
    files of traces + suspects --Decider--> causes (and the listing) --> findings

On Spark `sql.SqlJudge` may take what is in order from the two judges (`choice`). Only if there is a
suspect, or a trace with a problem, are the traces looked at a second time.
"""
