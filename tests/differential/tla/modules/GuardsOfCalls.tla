---- MODULE GuardsOfCalls ----
\* Guards that are operators without primes: TLC enters them, and counts every way they hold.
EXTENDS Naturals

VARIABLES x, bag

Init == x = 0 /\ bag = {}

Small(n) == n < 2 \/ n < 3
HasBelow(n) == \E m \in bag : m < n
Both(n) == Small(n) /\ (x = x \/ bag = bag)
Nested(n) == LET k == n + 1 IN Small(k) \/ k = 2
Chosen(n) == IF n > 1 THEN Small(0) ELSE n = n
Cased(n) == CASE n = 0 -> TRUE [] n = 1 -> Small(1) [] OTHER -> HasBelow(n)
Indirect(n) == Chosen(n)
Every == \A m \in bag : m >= 0 \/ m < 9

Up == x < 3 /\ Both(x) /\ x' = x + 1 /\ UNCHANGED bag
Put == Nested(x) /\ bag' = bag \union {x} /\ UNCHANGED x
Drop == HasBelow(x) /\ bag' = {} /\ UNCHANGED x
Down == Indirect(x) /\ x > 0 /\ x' = x - 1 /\ UNCHANGED bag
Back == Cased(x) /\ Every /\ x' = 0 /\ UNCHANGED bag
Late == x' = x /\ Small(x) /\ UNCHANGED bag
Denied == ~Small(x) /\ x' = 0 /\ UNCHANGED bag

Next == Up \/ Put \/ Drop \/ Down \/ Back \/ Late \/ Denied

Range == x \in 0..3
====
