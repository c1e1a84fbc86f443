--------------------------- MODULE ConstraintFails ---------------------------
(* TLC checks invariants on states that the constraint then discards. *)
EXTENDS Naturals
VARIABLE n
Init == n = 0
Up == n' = n + 1
Down == n > 0 /\ n' = n - 1
Next == Up \/ Down
Bound == n < 4
NeverFour == n # 4
=============================================================================
