---- MODULE Chain ----
\* A counter that goes from place to place; two of its formulas have no value everywhere.
EXTENDS Naturals
CONSTANTS Places, Nowhere
VARIABLES at, count

Init == at = Nowhere /\ count = 0

Go(place) == at # place /\ at' = place /\ count' = count + 1

\* Undefined unless the count is 0.
Jump == at' = [n \in {0} |-> Nowhere][count] /\ count' = 0

Next == (\E place \in Places : Go(place)) \/ Jump

\* Undefined where the count is 9.
Small == [n \in 0..8 |-> n < 3][count]

Somewhere == count > 0 => at \in Places
====
