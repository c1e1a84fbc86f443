------------------------------ MODULE Symmetry ------------------------------
EXTENDS Integers, FiniteSets, Sequences, TLC
CONSTANTS Nodes, Values, None
VARIABLES holder, waiting, written
Init == holder = None /\ waiting = <<>> /\ written = [n \in Nodes |-> {}]
Ask(n) == /\ n \notin {waiting[i] : i \in DOMAIN waiting} \union {holder}
          /\ waiting' = Append(waiting, n) /\ UNCHANGED <<holder, written>>
Grant == /\ holder = None /\ waiting # <<>>
         /\ holder' = Head(waiting) /\ waiting' = Tail(waiting) /\ UNCHANGED written
Write(v) == /\ holder # None
            /\ written' = [written EXCEPT ![holder] = @ \union {v}]
            /\ UNCHANGED <<holder, waiting>>
Release == /\ holder # None /\ written[holder] # {}
           /\ holder' = None /\ UNCHANGED <<waiting, written>>
Next == \/ \E n \in Nodes : Ask(n)
        \/ Grant \/ Release
        \/ \E v \in Values : Write(v)
Renaming == Permutations(Nodes) \union Permutations(Values)
TypeOK == /\ holder \in Nodes \union {None} /\ waiting \in Seq(Nodes)
          /\ written \in [Nodes -> SUBSET Values]
NotAllWritten == \E n \in Nodes : written[n] # Values
=============================================================================
