------------------------- MODULE RecursiveFunctions -------------------------
EXTENDS Naturals, Sequences
VARIABLES n, acc

Factorial[k \in 0..6] == IF k = 0 THEN 1 ELSE k * Factorial[k - 1]
Binomial[i \in 0..4, j \in 0..4] ==
  IF j = 0 THEN 1 ELSE IF i = 0 THEN 0 ELSE Binomial[i - 1, j - 1] + Binomial[i - 1, j]
Reversed(s) == LET r[i \in 0..Len(s)] == IF i = 0 THEN <<>> ELSE <<s[i]>> \o r[i - 1] IN r[Len(s)]

Init == n = 0 /\ acc = <<>>
Push == n < 4 /\ n' = n + 1 /\ acc' = Append(acc, Binomial[4, n])
Flip == acc # <<>> /\ acc' = Reversed(acc) /\ UNCHANGED n
Next == Push \/ Flip

FactorialRight == Factorial[n] = CASE n = 0 -> 1 [] n = 1 -> 1 [] n = 2 -> 2 [] n = 3 -> 6 [] n = 4 -> 24
TwiceReversed == Reversed(Reversed(acc)) = acc
=============================================================================
