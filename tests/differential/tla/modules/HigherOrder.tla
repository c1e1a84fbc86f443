----------------------------- MODULE HigherOrder -----------------------------
EXTENDS Naturals, Sequences
VARIABLE s

Map(op(_), seq) == [i \in DOMAIN seq |-> op(seq[i])]
Twice(op(_), x) == op(op(x))
Compose(f(_), g(_), x) == f(g(x))
Inc(x) == (x + 1) % 4
Combine(op(_, _), a, b) == op(a, b)
Apply(A(_), x) == A(x)

Init == s = <<0, 1>>
MapInc == s' = Map(Inc, s)
MapSquare == s' = Map(LAMBDA x : (x * x) % 4, s)
TwiceFirst == s' = <<Twice(LAMBDA y : Inc(y), s[1]), Compose(Inc, LAMBDA z : (z * 2) % 4, s[2])>>
Plus == s' = <<Combine(+, s[1], s[2]) % 4, s[2]>>
Set(v) == s' = [s EXCEPT ![2] = v]
Select == s' = SelectSeq(<<s[1], s[2], 3, 2>>, LAMBDA e : e % 2 = s[1] % 2) \o <<>> /\ Len(s') = 2
Next == MapInc \/ MapSquare \/ TwiceFirst \/ Plus \/ Select \/ \E v \in {0, 2} : Apply(Set, v)
Small == Len(s) = 2 /\ \A i \in 1..2 : s[i] \in 0..3
=============================================================================
