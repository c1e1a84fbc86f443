----------------------------- MODULE InitChoices -----------------------------
EXTENDS Naturals
VARIABLES a, b, c
Even == {n \in 0..5 : n % 2 = 0}
Init == /\ a \in Even
        /\ \/ b = a + 1 /\ c = TRUE
           \/ b \in {a} \cup {7} /\ c = (b = 7)
        /\ a # 2 \/ b = 7
        /\ LET d == a + b IN d < 12
        /\ \E k \in 0..1 : k = a % 2 /\ c \in BOOLEAN
Flip == c' = ~c /\ UNCHANGED <<a, b>>
Mix == \E u, v \in {a, b} : u # v /\ a' = u /\ b' = v /\ c' = (c <=> u < v)
Next == Flip \/ Mix
Bools == c \in BOOLEAN /\ (c => c) /\ (c \equiv c)
=============================================================================
