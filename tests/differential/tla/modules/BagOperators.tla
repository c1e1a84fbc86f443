---------------------------- MODULE BagOperators ----------------------------
EXTENDS Naturals, Bags, FiniteSets
VARIABLES bag, last

Kinds == {"k", "l"}
Init == bag = EmptyBag /\ last = 0
Send(k) == BagCardinality(bag) < 3 /\ bag' = bag (+) SetToBag({k}) /\ last' = CopiesIn(k, bag')
Receive(k) == BagIn(k, bag) /\ bag' = bag (-) SetToBag({k}) /\ last' = CopiesIn(k, bag)
Flush == bag # EmptyBag /\ bag' = EmptyBag /\ last' = Cardinality(BagToSet(bag))
Next == Flush \/ \E k \in Kinds : Send(k) \/ Receive(k)

IsBag == IsABag(bag)
Domain == DOMAIN bag = BagToSet(bag) /\ BagToSet(bag) \subseteq Kinds
SubBags == SetToBag(BagToSet(bag)) \sqsubseteq bag
Union == BagUnion({bag}) = bag
=============================================================================
