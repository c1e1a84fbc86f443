----------------------------- MODULE Properties -----------------------------
(* Properties of initial states, of all states and of steps, in one formula.  *)
EXTENDS Integers
VARIABLE x
Init == x = 2
Next == x' = (x + 1) % 5
Spec == Init /\ [][Next]_x

Abstract == x \in 0 .. 2 /\ [](x \in 0 .. 4) /\ [][x' # x]_x
Sometimes == [](x < 4)
Upwards == [][x' > x]_x
Begins == x = 1
=============================================================================
