---------------------------- MODULE TlcOperators ----------------------------
EXTENDS Naturals, Sequences, TLC, FiniteSets
VARIABLES f, order

Init == f = (1 :> 5) /\ order = <<3, 1, 2>>
Extend == Cardinality(DOMAIN f) < 3 /\ f' = f @@ ((Cardinality(DOMAIN f) + 2) :> 7) /\ UNCHANGED order
Override == f' = (1 :> 6 @@ 1 :> 9) @@ f /\ UNCHANGED order
Sort == order' = SortSeq(order, <) /\ UNCHANGED f
Reverse == order' = SortSeq(order, LAMBDA a, b : a > b) /\ UNCHANGED f
Permute == \E p \in Permutations({1, 2, 3}) : order' = [i \in 1..3 |-> order[p[i]]] /\ f' = f
Next == Extend \/ Override \/ Sort \/ Reverse \/ Permute

Six == Cardinality(Permutations({1, 2, 3})) = 6
Asserted == Assert(Len(order) = 3, "three elements")
Text == ToString(f[1]) \in {"5", "6"}
Left == (1 :> 6 @@ 1 :> 9)[1] = 6
=============================================================================
