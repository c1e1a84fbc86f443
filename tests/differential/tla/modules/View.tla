-------------------------------- MODULE View --------------------------------
EXTENDS Naturals
VARIABLES x, steps
Init == x = 0 /\ steps = 0
Move == x' = (x + 1) % 4 /\ steps' = steps + 1
Back == x > 0 /\ x' = x - 1 /\ steps' = steps + 1
Next == Move \/ Back
OnlyX == <<x>>
Small == x \in 0..3
=============================================================================
