----------------------------- MODULE BoxActions -----------------------------
EXTENDS Naturals
VARIABLES x, y

vars == <<x, y>>
Up == x < 3 /\ x' = x + 1 /\ y' \in {y, x}
Down == x > 0 /\ x' = x - 1 /\ y' = y
Next == [Up]_vars \/ <<Down>>_x

Init == x = 0 /\ y = 0

Steps == [][x' = x + 1 \/ x' = x - 1]_x
Moves == [][<<Up>>_x \/ [Down]_y]_vars
Spec == Init /\ [][Next]_vars /\ WF_vars(Up)
Range == x \in 0..3 /\ y \in 0..3
=============================================================================
