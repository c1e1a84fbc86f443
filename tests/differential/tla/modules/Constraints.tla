----------------------------- MODULE Constraints -----------------------------
EXTENDS Naturals, Sequences
VARIABLES log, n
Init == log = <<>> /\ n = 0
Write == log' = Append(log, n) /\ UNCHANGED n
Bump == n' = n + 1 /\ UNCHANGED log
Drop == log # <<>> /\ log' = Tail(log) /\ n' = n
Next == Write \/ Bump \/ Drop
Short == Len(log) <= 2
Low == n <= 2
NoBumpWhenFull == Len(log) = 2 => n' = n
Safe == Len(log) <= 3 /\ n <= 3
Ordered == \A i, j \in DOMAIN log : i < j => log[i] <= log[j]
=============================================================================
