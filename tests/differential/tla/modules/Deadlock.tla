------------------------------ MODULE Deadlock ------------------------------
EXTENDS Naturals
VARIABLES held, turn
Init == held = [i \in 1..2 |-> {}] /\ turn = 0
Take(i, l) == l \notin held[1] \cup held[2] /\ held' = [held EXCEPT ![i] = @ \cup {l}] /\ turn' = i
Free(i) == held[i] = {"a", "b"} /\ held' = [held EXCEPT ![i] = {}] /\ turn' = 0
Next == \E i \in 1..2 : Free(i) \/ \E l \in {"a", "b"} : Take(i, l)
Exclusive == held[1] \cap held[2] = {}
=============================================================================
