---------------------------- MODULE FunctionSets ----------------------------
EXTENDS Naturals, FiniteSets
CONSTANT Procs
VARIABLES f, g

Init == f \in [Procs -> {0, 1}] /\ g \in [{1, 2} -> {"x", "y"}]
Any == f' \in [Procs -> 0..2] /\ UNCHANGED g
Narrow == f' \in {h \in [Procs -> 0..2] : \A p \in Procs : h[p] <= f[p]} /\ g' = [i \in 1..2 |-> g[3 - i]]
Swap == g' = <<g[2], g[1]>> /\ f' = [p \in DOMAIN f |-> (f[p] + 1) % 3]
Next == Any \/ Narrow \/ Swap

TypeOK == f \in [Procs -> 0..2] /\ g \in [1..2 -> {"x", "y"}]
Size == Cardinality([Procs -> {0, 1}]) = 2 ^ Cardinality(Procs)
NotFunctions == f \notin [Procs -> {5}] /\ [{} -> {1}] = {<<>>} /\ [{1} -> {}] = {}
=============================================================================
