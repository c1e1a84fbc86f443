---------------------------- MODULE CrossProducts ----------------------------
EXTENDS Naturals, FiniteSets
VARIABLES p, t
Init == p \in {1, 2} \X {"u"} /\ t = <<>>
Triple == t' \in {1} \X {2, 3} \X BOOLEAN /\ p' = p
Nest == p' \in ({1} \X {"v"}) /\ t' = <<p, t>>[1]
Clear == p' = <<3 - p[1], p[2]>> /\ t' = <<>>
Next == Triple \/ Nest \/ Clear
Shapes == p \in (1..2) \X {"u", "v"} /\ Cardinality({1, 2} \X {3, 4} \X {5}) = 4
Nested == <<1, 2, 3>> \notin ({1} \X {2}) \X {3} /\ <<<<1, 2>>, 3>> \in ({1} \X {2}) \X {3}
=============================================================================
