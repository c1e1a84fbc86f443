----------------------------- MODULE RecordSets -----------------------------
EXTENDS Naturals, FiniteSets
VARIABLES msgs, cur

Message == [kind : {"req", "ack"}, n : 0..1] \cup [kind : {"end"}]
Init == msgs = {} /\ cur \in [kind : {"req"}, n : 0..1]
Send == \E m \in Message : m \notin msgs /\ Cardinality(msgs) < 2 /\ msgs' = msgs \cup {m} /\ UNCHANGED cur
Receive == \E m \in msgs : m.kind # "end" /\ cur' = [m EXCEPT !.n = 1 - @] /\ msgs' = msgs \ {m}
Close == [kind |-> "end"] \in msgs /\ msgs' = {} /\ cur' \in [kind : {"ack"}, n : {0}]
Next == Send \/ Receive \/ Close

TypeOK == msgs \subseteq Message /\ cur \in Message
Fields == DOMAIN cur = {"kind", "n"} /\ cur["kind"] = cur.kind
Equal == [n |-> 1, kind |-> "x"] = [kind |-> "x", n |-> 1] /\ [a |-> 1] # [b |-> 1]
AsFunction == cur = [f \in {"n", "kind"} |-> IF f = "n" THEN cur.n ELSE cur.kind]
=============================================================================
