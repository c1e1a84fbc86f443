--------------------------- MODULE LazyEvaluation ---------------------------
EXTENDS Integers, Sequences, FiniteSets
VARIABLES s, f, r

Init == s = <<>> /\ f = [i \in {1, 3} |-> i] /\ r = {}
Push(n) == Len(s) < 2 /\ s' = Append(s, n) /\ UNCHANGED <<f, r>>
Pop == s # <<>> /\ Head(s) \in DOMAIN f /\ f' = [f EXCEPT ![Head(s)] = (@ + 1) % 4] /\ s' = Tail(s) /\ r' = r
Skip == (IF s = <<>> THEN TRUE ELSE Head(s) \notin DOMAIN f) /\ s' = (IF s = <<>> THEN <<2>> ELSE Tail(s)) /\ f' = f /\ r' = {Len(s)}
Next == Pop \/ Skip \/ \E n \in 1..3 : Push(n)

Guarded == s # <<>> => Head(s) \in 1..3
Disjunction == s = <<>> \/ s[Len(s)] > 0
Conditional == IF 2 \in DOMAIN f THEN f[2] = 0 ELSE f[1] \in 0..3
Quantified == \A i \in 1..Len(s) : s[i] > 0 /\ (i \in DOMAIN f => f[i] < 4)
Unused == LET bad == f[2] IN 2 \in DOMAIN f => bad = 1
Empty == \A x \in {} : x[1] = 2
Cased == CASE s = <<>> -> TRUE [] s # <<>> -> Head(s) < 4
Existential == \E i \in {1, 2, 3} : i = 1 \/ f[i] = f[2]
Recursive == LET RECURSIVE R(_, _)
                 R(n, e) == IF n = 0 THEN TRUE ELSE s = <<>> \/ e > 0 \/ R(n - 1, e)
             IN R(2, Head(s)) /\ R(0, Head(<<>>))
RECURSIVE Times(_, _, _)
Times(Op(_), a, n) == IF n = 0 THEN Op(a) ELSE Times(Op, a, n - 1)
Operand == Times(LAMBDA v : s = <<>> \/ v > 0, Head(s), 2)
Parameter == LET First(a, b) == IF a THEN b ELSE TRUE IN First(s # <<>>, Head(s) > 0)
=============================================================================
