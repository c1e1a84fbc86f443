---- MODULE UnnamedNext ----
\* A next-state relation that is no operator: one action to TLC, which counts every way to a state.
EXTENDS Naturals, FiniteSets

VARIABLES count, seen

Init == count = 0 /\ seen = {}

Up == count < 4 /\ count' = count + 1 /\ UNCHANGED seen

Drop == \E n \in seen : seen' = seen \ {n} /\ UNCHANGED count

Note == \E n \in 1..3 : seen' = seen \union {n % 2} /\ UNCHANGED count

Next == Up \/ Drop \/ Note

InOrder == \A n \in seen : count' # count => n < count \/ n < count' \/ n = 0

FewSeen == Cardinality(seen') < 2 \/ count' > 1

Spec == Init /\ [][Next /\ InOrder /\ FewSeen]_<<count, seen>> /\ WF_count(Up)

AtMostFour == count <= 4
====
