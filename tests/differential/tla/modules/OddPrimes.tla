------------------------------ MODULE OddPrimes ------------------------------
EXTENDS Naturals
VARIABLES x, y, z

vars == <<x, y, z>>
rest == <<y, <<z>>>>
Sum == x + y
Zed(n) == z + n

Init == x = 0 /\ y = 0 /\ z = 0
GuardAfter == x' = (x + 1) % 4 /\ x' # 2 /\ UNCHANGED rest
FromSet == x' \in {0, 3} /\ y' = x' /\ z' = z
PrimedOperator == x' = x /\ y' \in 0..2 /\ Sum' > Sum /\ z' = z
PrimedExpression == x' \in 1..2 /\ y' = (4 - x') /\ (x + y)' = 4 /\ z' = 1 /\ Zed(1)' = 2
PrimedAssign == x = 1 /\ x' = 1 /\ y' = 1 /\ z' = Sum'
Swap == x' = y /\ y' = x /\ <<x', y'>> = <<y, x>> /\ UNCHANGED z
Stay == UNCHANGED vars
Member == x' \in {y} /\ y' \in {v \in 0..2 : v # y} /\ UNCHANGED <<z>>
Next == PrimedAssign \/ GuardAfter \/ FromSet \/ PrimedOperator \/ PrimedExpression
        \/ Swap \/ Stay \/ Member
Small == x \in 0..3 /\ y \in 0..3 /\ z \in 0..2
ZedStays == [][z' = z \/ z' \in 1..2]_vars
=============================================================================
