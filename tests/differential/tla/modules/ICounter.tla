------------------------------ MODULE ICounter ------------------------------
(* Instantiated by InstanceWith and InstanceNested. *)
EXTENDS Naturals
CONSTANT Limit
VARIABLE count

Zero == count = 0
Inc == count < Limit /\ count' = count + 1
Reset == count = Limit /\ count' = 0
Step == Inc \/ Reset
Bounded == count \in 0..Limit
=============================================================================
