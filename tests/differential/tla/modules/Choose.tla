------------------------------- MODULE Choose -------------------------------
EXTENDS Integers, FiniteSets
VARIABLES pool, picked

Max(S) == CHOOSE x \in S : \A y \in S : y <= x
Pair == CHOOSE <<x, y>> \in (1..3) \X (1..3) : x + y = 6
Some(S) == CHOOSE x \in S : TRUE

Init == pool = 1..4 /\ picked = 0
TakeMax == pool # {} /\ picked' = Max(pool) /\ pool' = pool \ {picked'}
TakeSome == pool # {} /\ picked' = Some(pool) /\ pool' = pool \ {Some(pool)}
Refill == pool = {} /\ pool' = {Pair[1], Pair[2], 7} /\ UNCHANGED picked
Next == TakeMax \/ TakeSome \/ Refill

SameChoice == pool # {} => Some(pool) = Some(pool \cup {})
=============================================================================
