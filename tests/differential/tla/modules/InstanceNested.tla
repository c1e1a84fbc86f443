--------------------------- MODULE InstanceNested ---------------------------
EXTENDS Naturals
VARIABLE cells
Keys == {"p", "q"}

Cell(k, n) == INSTANCE ICell WITH key <- k, bound <- n

Init == cells = [k \in Keys |-> 0]
Bump(k) == Cell(k, 2)!Bump
Clear == \A k \in Keys : Cell(k, 2)!Full /\ cells' = [j \in Keys |-> 0]
Next == Clear \/ \E k \in Keys : Bump(k)

AllBounded == \A k \in Keys : Cell(k, 2)!Counter!Bounded
=============================================================================
