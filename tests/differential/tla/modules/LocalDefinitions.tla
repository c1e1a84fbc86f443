-------------------------- MODULE LocalDefinitions --------------------------
EXTENDS ILocal
LOCAL INSTANCE Integers
VARIABLE n

LOCAL Hidden(k) == k - 1
Init == n \in {0, 3}
Step == n' = Shown(n)
Back == n > 2 /\ n' = Hidden(n)
Next == Step \/ Back
Range == n \in 0..6
=============================================================================
