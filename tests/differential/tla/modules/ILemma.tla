------------------------------- MODULE ILemma -------------------------------
EXTENDS Integers
CONSTANT limit
AtMost(n) == n <= limit
LEMMA Sound == \A n \in 0 .. 5 : AtMost(n)
=============================================================================
