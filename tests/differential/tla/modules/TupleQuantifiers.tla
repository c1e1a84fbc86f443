-------------------------- MODULE TupleQuantifiers --------------------------
EXTENDS Naturals
VARIABLES edges, at

All == (1..3) \X (1..3)
Init == edges = {<<1, 2>>} /\ at = 1
Add == \E <<a, b>> \in All : a < b /\ <<a, b>> \notin edges /\ edges' = edges \cup {<<a, b>>} /\ at' = at
Move == \E <<a, b>> \in edges : a = at /\ at' = b /\ UNCHANGED edges
Jump == \E a, b \in 1..3, c \in {0, 1} : a + c = at /\ b > a /\ at' = b /\ edges' = {<<a, b>>}
Next == Add \/ Move \/ Jump

Targets == {p[2] : p \in edges}
Ordered == \A <<a, b>> \in edges : a < b
Pairs == {<<a, b>> \in All : a < b} = {<<a, b>> \in All : b > a}
Sums == {a + b : <<a, b>> \in edges} \subseteq {a * b + a + b : a \in 0..2, b \in {0, 1}} \cup 0..9
Function == [<<a, b>> \in edges |-> a + b] = [p \in edges |-> p[1] + p[2]]
NoLoop == ~ \E a, b \in 1..3 : <<a, b>> \in edges /\ <<b, a>> \in edges
=============================================================================
