-------------------------------- MODULE ICell --------------------------------
(* Instantiated with a parameter by InstanceNested; instantiates ICounter itself. *)
EXTENDS Naturals
CONSTANTS key, bound
VARIABLES cells

Counter == INSTANCE ICounter WITH Limit <- bound, count <- cells[key]

CanBump == Counter!Bounded /\ cells[key] < bound
Bump == CanBump /\ cells' = [cells EXCEPT ![key] = @ + 1]
Full == cells[key] = bound
=============================================================================
