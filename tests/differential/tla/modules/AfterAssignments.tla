-------------------------- MODULE AfterAssignments --------------------------
(* What stands after the last assignment chooses nothing: it is evaluated, lazily. *)
EXTENDS Naturals, Sequences
VARIABLES x, s
Init == s = <<>> /\ x \in 1..2 /\ (x > 0 \/ x < 3) /\ (s = <<>> \/ Head(s) = 1)
Guarded == x' = 5 /\ s' = s /\ (x = 1 \/ x > 0) /\ (s = <<>> \/ Head(s) >= 0)
Some == x' = 6 /\ s' = <<x>> /\ \E y \in {1, 2} : y > 0
Lazy == s' = Append(s, 1) /\ Len(s) < 2 /\ x' = Len(s) /\ (s = <<>> \/ s[1] >= 0 \/ s[9] = 1)
Before == (x = 1 \/ x > 0) /\ x' = 3 /\ s' = <<>>
Next == Guarded \/ Some \/ Lazy \/ Before
Range == x \in 0..6
=============================================================================
