------------------------------- MODULE Labels -------------------------------
(* Which operator's name a transition carries: the innermost that is not a mere conjunct. *)
EXTENDS Naturals
VARIABLES x, y
Init == x = 0 /\ y = 0
Left == x' = (x + 1) % 3 /\ y' = y
Right == y' = (y + 1) % 2 /\ x' = x
Either == Left \/ Right
Guarded == x = y /\ (Left \/ Right)
Named(n) == \E m \in {n, n + 1} : x' = m % 3 /\ y' = y
Wrapped == Named(1)
Sub(n) == Wrapped \/ (n = 1 /\ Right)
Next == \/ Either
        \/ Guarded
        \/ \E n \in 0..1 : Sub(n)
        \/ x = 2 /\ x' = 0 /\ y' = 1
        \/ (x = 1 /\ Left)
=============================================================================
