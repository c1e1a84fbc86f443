----------------------------- MODULE ModelValues -----------------------------
EXTENDS Naturals, FiniteSets
CONSTANTS Nodes, None, Other
VARIABLES owner, log

Init == owner = None /\ log = [n \in Nodes |-> None]
Acquire(n) == owner = None /\ owner' = n /\ log' = [log EXCEPT ![n] = owner]
Pass(n, m) == owner = n /\ m # n /\ owner' = m /\ log' = [log EXCEPT ![n] = m]
Release == owner # None /\ owner' = None /\ UNCHANGED log
Next == Release \/ \E n \in Nodes : Acquire(n) \/ \E m \in Nodes : Pass(n, m)

TypeOK == owner \in Nodes \cup {None} /\ log \in [Nodes -> Nodes \cup {None}]
NotMixed == None \notin Nodes /\ Other # 1 /\ Other # "Other" /\ Cardinality(Nodes \cup {None, 1}) = 4
=============================================================================
