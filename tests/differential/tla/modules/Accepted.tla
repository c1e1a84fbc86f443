------------------------------ MODULE Accepted ------------------------------
(* What TLC accepts beyond the plain form: LOCAL Init and Next, constants that *)
(* are none, an override in one module's text, a lemma of a parametrised       *)
(* instance by its name, an infinite set as the only element of UNION's set.   *)
EXTENDS Integers, IWithin
VARIABLES x, f
Bounded(limit) == INSTANCE ILemma
W == INSTANCE IWithin
Few == 0 .. 3

LOCAL Init == x \in Within /\ f = [i \in 0 .. 1 |-> 7]
LOCAL Next == x < 5 /\ x' = x + 1 /\ UNCHANGED f

Lemma == Bounded(5)!AtMost(x) /\ Bounded(6)!Sound
Typed == f \in UNION {[0 .. 1 -> Int]}
Present == x # W!Missing
NatIsFew == 17 \notin Nat
=============================================================================
