--------------------------- MODULE EnabledActions ---------------------------
EXTENDS Naturals
VARIABLES lock, want

P == {1, 2}
Init == lock = 0 /\ want = {}
Want(p) == p \notin want /\ want' = want \cup {p} /\ UNCHANGED lock
Take(p) == lock = 0 /\ p \in want /\ lock' = p /\ UNCHANGED want
Leave(p) == lock = p /\ lock' = 0 /\ want' = want \ {p}
Idle == ~ ENABLED (\E p \in P : Take(p)) /\ lock # 0 /\ lock' = lock /\ want' = {lock}
Next == Idle \/ \E p \in P : Want(p) \/ Take(p) \/ Leave(p)

Enabledness == \A p \in P : ENABLED Take(p) <=> lock = 0 /\ p \in want
AlwaysEnabled == ENABLED Next
NoneLocked == ENABLED Leave(1) => ~ ENABLED Leave(2)
=============================================================================
