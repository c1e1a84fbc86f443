---------------------------- MODULE InitialFails ----------------------------
EXTENDS Naturals
VARIABLE x
Init == \/ x \in 1..3
        \/ \E y \in {5, 6} : x = y * 2
        \/ IF TRUE THEN x = 20 ELSE x = 21
Next == x' = x
Small == x < 12
=============================================================================
