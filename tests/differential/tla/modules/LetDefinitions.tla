--------------------------- MODULE LetDefinitions ---------------------------
EXTENDS Naturals, Sequences
VARIABLES q, out

Init == q = <<>> /\ out = 0
Put(n) == LET next == Append(q, n)
              Room(k) == Len(next) <= k
          IN Room(2) /\ q' = next /\ UNCHANGED out
Take == LET head == Head(q)
            After(f(_)) == f(Tail(q))
            Id(t) == t
        IN q # <<>> /\ q' = After(Id) /\ out' = LET twice == 2 * head IN twice % 3
Either == LET Drop == q' = <<>> /\ out' = 0
              Keep == q' = q /\ out' = Len(q)
          IN q # <<>> /\ (Drop \/ Keep)
Next == Take \/ Either \/ \E n \in 1..2 : Put(n)
Short == LET N == Len(q) IN N <= 2 /\ LET M == N + 1 IN M > N
=============================================================================
