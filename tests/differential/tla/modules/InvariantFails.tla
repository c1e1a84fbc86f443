--------------------------- MODULE InvariantFails ---------------------------
EXTENDS Naturals
VARIABLES big, small

Min(a, b) == IF a < b THEN a ELSE b
Init == big = 0 /\ small = 0
FillBig == big' = 5 /\ small' = small
FillSmall == small' = 3 /\ big' = big
Empty == (big' = 0 /\ small' = small) \/ (small' = 0 /\ big' = big)
SmallToBig == big' = Min(big + small, 5) /\ small' = small - (big' - big)
BigToSmall == small' = Min(big + small, 3) /\ big' = big - (small' - small)
Next == FillBig \/ FillSmall \/ Empty \/ SmallToBig \/ BigToSmall
TypeOK == big \in 0..5 /\ small \in 0..3
NotSolved == big # 4
=============================================================================
