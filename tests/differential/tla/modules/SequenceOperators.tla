-------------------------- MODULE SequenceOperators --------------------------
EXTENDS Naturals, Sequences
VARIABLES q
Init == q = <<>>
Grow == \E e \in 0..1 : Len(q) < 3 /\ q' = Append(q, e)
Shrink == q # <<>> /\ q' \in {Tail(q), SubSeq(q, 1, Len(q) - 1), SubSeq(q, 2, 1)}
Double == Len(q) = 1 /\ q' = q \o q \o <<1>>
Ones == q' = SelectSeq(q, LAMBDA e : e = 1)
Next == Grow \/ Shrink \/ Double \/ Ones
TypeOK == q \in Seq({0, 1}) /\ Len(q) <= 3
DomainIsRange == DOMAIN q = 1..Len(q)
AsFunction == q = [i \in 1..Len(q) |-> q[i]] /\ [i \in {} |-> 1] = <<>>
Compare == <<1, 2>> # <<1>> /\ <<q, 1>>[1] = q
=============================================================================
