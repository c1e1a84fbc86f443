---- MODULE Lock ----
\* A lock that counts its takers: a protocol of a few lines that is not Kafka's.
EXTENDS Naturals, Sequences
CONSTANTS Clients, Limit
VARIABLES holder, count, log

Init == holder = "nobody" /\ count = 0 /\ log = <<>>

Take(client) ==
    /\ holder = "nobody"
    /\ count < Limit
    /\ holder' = client
    /\ count' = count + 1
    /\ log' = Append(log, client)

Drop ==
    /\ \/ holder = "a"
       \/ holder \notin {"a", "nobody"}
    /\ holder' = "nobody"
    /\ UNCHANGED <<count, log>>

Next == (\E client \in Clients : Take(client)) \/ Drop

CountIsLength == count = Len(log)
HolderIsLast == holder # "nobody" => holder = log[Len(log)]
Partial == count < 2 \/ log[count + 9] = "a"
Never == log[count + 9] = "a"
CountNeverFalls == [][count' >= count]_<<holder, count, log>>
====
