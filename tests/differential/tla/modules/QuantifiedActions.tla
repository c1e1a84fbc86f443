-------------------------- MODULE QuantifiedActions --------------------------
EXTENDS Naturals
VARIABLES x, y
S == {1, 2}
Init == x = 1 /\ y = [s \in S |-> 0]
ForAll == (\A s \in S : y[s] < 2) /\ y' = [s \in S |-> y[s] + 1] /\ x' = x
ForAllAssign == (\A s \in {x} : x' = 3 - s) /\ UNCHANGED y
Implied == (x = 1 => y[1] = 0) /\ (x = 2 => y' = [y EXCEPT ![1] = 0]) /\ (x = 1 => y' = y) /\ x' \in S
Negated == ~(x = 1 \/ y[2] = 2) /\ x' = 1 /\ y' = y
Dependent == \E s \in S, t \in {v \in S : v # x} : s # t /\ x' = t /\ y' = [y EXCEPT ![s] = 0]
Conditional == IF x = 1 THEN x' = 2 /\ UNCHANGED y ELSE /\ x' = 1
                                                       /\ \/ y' = [y EXCEPT ![2] = 1]
                                                          \/ y[1] = 1 /\ y' = [y EXCEPT ![1] = 2]
Next == ForAll \/ ForAllAssign \/ Implied \/ Negated \/ Dependent \/ Conditional
Range == x \in S /\ \A s \in S : y[s] \in 0..2
=============================================================================
