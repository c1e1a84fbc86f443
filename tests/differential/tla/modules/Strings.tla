------------------------------- MODULE Strings -------------------------------
EXTENDS Sequences, Naturals
VARIABLES word, seen

Words == {"", "a", "b c", "quote\"d", "back\\slash", "topic-0"}
Init == word = "" /\ seen = [w \in {} |-> 0]
Say(w) == w # word /\ word' = w /\ seen' = [v \in DOMAIN seen \cup {w} |-> v # ""]
Forget == word \in STRING /\ word' = "" /\ seen' = [w \in {} |-> 0]
Next == Forget \/ \E w \in Words : Say(w)
Known == word \in Words
Domains == DOMAIN seen \subseteq Words
=============================================================================
