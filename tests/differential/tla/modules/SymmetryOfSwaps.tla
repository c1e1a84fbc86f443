-------------------------- MODULE SymmetryOfSwaps ---------------------------
EXTENDS Integers, TLC
CONSTANTS Nodes
VARIABLES votes, leader, term
Init == votes = [n \in Nodes |-> 0] /\ leader = {} /\ term \in Nodes
Vote(n) == /\ leader = {} /\ votes[n] < 2
           /\ votes' = [votes EXCEPT ![n] = @ + 1] /\ UNCHANGED <<leader, term>>
Lead(n) == /\ leader = {} /\ votes[n] = 2 /\ leader' = {n} /\ term' = n /\ UNCHANGED votes
Fall == leader # {} /\ leader' = {} /\ votes' = [n \in Nodes |-> 0] /\ UNCHANGED term
Next == (\E n \in Nodes : Vote(n) \/ Lead(n)) \/ Fall
Swap == {[n \in Nodes |-> CASE n = a -> b [] n = b -> a [] OTHER -> n] : a, b \in Nodes}
OneLeader == \A m, n \in leader : m = n
=============================================================================
