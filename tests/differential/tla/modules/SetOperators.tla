---------------------------- MODULE SetOperators ----------------------------
EXTENDS Naturals, FiniteSets
VARIABLES s, family

Base == 1..3
Init == s = {} /\ family = {{}}
Pick == s' \in SUBSET Base /\ family' = family
Store == family' = {s, {1}} /\ s' = UNION family
Complement == s' = Base \ s /\ family' = {Base \ t : t \in family}
Meet == s' = s \cap UNION family /\ family' = {t \cap s : t \in family} \cup {t \in SUBSET s : Cardinality(t) = 2}
Next == Pick \/ Store \/ Complement \/ Meet

Typed == s \subseteq Base /\ family \subseteq SUBSET Base
DeMorgan == \A t \in family : Base \ (s \cup t) = (Base \ s) \cap (Base \ t)
PowerSize == Cardinality(SUBSET s) = 2 ^ Cardinality(s)
Members == \A t \in SUBSET Base : (t \subseteq s) = (t \in SUBSET s)
=============================================================================
