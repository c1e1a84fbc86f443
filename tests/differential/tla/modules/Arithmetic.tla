----------------------------- MODULE Arithmetic -----------------------------
EXTENDS Integers
VARIABLES i, j
Init == i = -3 /\ j = 1
Divide == i' = i \div 2 /\ j' = i % 2
Multiply == i * j < 9 /\ i * j > -9 /\ i' = i * j - 1 /\ j' = -j
Power == j \in 0..2 /\ i' = (-2) ^ j /\ j' = 2 ^ j - 1
Range == \E k \in -1..1 : i' = k /\ j' = k - i /\ j' \in -3..3
Next == Divide \/ Multiply \/ Power \/ Range
Euclid == \A n \in -7..7, d \in 1..3 : n = d * (n \div d) + (n % d) /\ n % d \in 0..(d - 1)
Typed == i \in Int /\ j \in Int /\ (i \in Nat <=> i >= 0) /\ 3..1 = {} /\ -(-i) = i
=============================================================================
