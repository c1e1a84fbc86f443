---------------------------- MODULE Lock ----------------------------
(* Processes take a lock in turns; what it takes to try every verdict. *)
EXTENDS Naturals, Sequences
CONSTANTS Processes, Turns
VARIABLES holder, queue, turns
vars == <<holder, queue, turns>>

Free == "nobody"

Init == holder = Free /\ queue = <<>> /\ turns = 0

Ask(p) ==
  /\ \A i \in 1..Len(queue) : queue[i] # p
  /\ holder # p
  /\ queue' = Append(queue, p)
  /\ UNCHANGED <<holder, turns>>

Guard(h) == h = Free

Take(p) ==
  /\ Guard(holder)
  /\ queue # <<>> /\ Head(queue) = p
  /\ turns < Turns
  /\ holder' = p
  /\ queue' = Tail(queue)
  /\ turns' = turns + 1

Release(p) ==
  /\ holder = p
  /\ holder' = Free
  /\ UNCHANGED <<queue, turns>>

Next ==
  \/ \E p \in Processes : Ask(p)
  \/ \E p \in Processes : Take(p)
  \/ \E p \in Processes : Release(p)

Spec == Init /\ [][Next]_vars
FairSpec == Spec /\ WF_vars(Next)

TypeOK == holder \in Processes \union {Free} /\ turns \in 0..Turns
ShortQueue == Len(queue) < 2
OneTurn == turns < 2

TurnsNeverFall == [][turns' >= turns]_vars
HolderReleasesFirst == [][holder # Free /\ holder' # holder => holder' = Free]_vars
NeverReleased == [][holder' # Free]_vars
SomebodyHolds == <>(holder # Free)
AlwaysAgain == []<>(holder # Free)

Waiting == Len(queue) = 2
Impossible == turns > Turns
Broken == Head(queue) = "a"
=====================================================================
