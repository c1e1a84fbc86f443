------------------------- MODULE RecursiveOperators -------------------------
EXTENDS Integers, Sequences, FiniteSets
VARIABLES set, total

RECURSIVE SumOf(_), IsEven(_), IsOdd(_), Gcd(_, _), Flatten(_), Fold(_, _, _)
SumOf(S) == IF S = {} THEN 0 ELSE LET x == CHOOSE y \in S : TRUE IN x + SumOf(S \ {x})
IsEven(n) == IF n = 0 THEN TRUE ELSE IsOdd(n - 1)
IsOdd(n) == IF n = 0 THEN FALSE ELSE IsEven(n - 1)
Gcd(m, n) == IF n = 0 THEN m ELSE Gcd(n, m % n)
Flatten(ss) == IF ss = <<>> THEN <<>> ELSE Head(ss) \o Flatten(Tail(ss))
Fold(op(_, _), seq, base) ==
  IF seq = <<>> THEN base ELSE Fold(op, Tail(seq), op(base, Head(seq)))

Init == set = {} /\ total = 0
Add(n) == n \notin set /\ set' = set \cup {n} /\ total' = SumOf(set')
Drop == \E n \in set : IsEven(n + total) /\ set' = set \ {n} /\ total' = SumOf(set \ {n})
Halve == IsEven(total) /\ total > Gcd(total, 6) /\ total' = Gcd(total, 6) /\ set' = {}
Next == Drop \/ Halve \/ \E n \in 1..4 : Add(n)

Plus(a, b) == a + b
TotalIsSum == total = SumOf(set) \/ set = {}
FlattenWorks == Flatten(<<<<1>>, <<>>, <<2, total>>>>) = <<1, 2, total>>
FoldWorks == Fold(Plus, <<1, 2, total>>, 0) = total + 3
=============================================================================
