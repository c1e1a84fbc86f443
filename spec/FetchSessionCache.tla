--------------------------- MODULE FetchSessionCache ---------------------------
(***************************************************************************)
(* A broker's cache of fetch sessions (KIP-227), which has few slots: who  *)
(* gets a session when it is full, and whose session goes for it. A client *)
(* that gets none fetches everything each time; one whose session went     *)
(* hears of it at its next fetch.                                          *)
(*                                                                         *)
(* Each request is a step of its own, with its answer in `answer`; until   *)
(* that is taken no other request is sent. What a session answers is the   *)
(* text of FetchSessions.                                                  *)
(*                                                                         *)
(*   a step                | in Kafka                                      *)
(*   ----------------------+---------------------------------------------- *)
(*   Open                  | FetchManager.newContext, epoch 0, and         *)
(*                         | FetchSessionCacheShard.maybeCreateSession     *)
(*   Continue              | the same: FetchSession.update and             *)
(*                         | FetchSessionCacheShard.touch                  *)
(*   Close                 | the same, epoch -1                            *)
(*   LetEvictionTimePass   | the minimum time for which a session must be  *)
(*                         | unused (KafkaBroker.                          *)
(*                         | MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS)    *)
(*                                                                         *)
(* Kafka has eight shards, each with its own slots; a new session goes to  *)
(* the next one in turn (KAFKA-9401). This is one of them.                 *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  Clients,    \* each has one session at a time
  Followers,  \* those of them that are replicas: their sessions are privileged
  Slots,      \* max.incremental.fetch.session.cache.slots, of a shard
  Sizes,      \* of each client the numbers of partitions that its session may have
  Times       \* so often the eviction time passes

VARIABLES
  sessions,  \* what the broker remembers of each client's session
  use,       \* the clients with a session, from the least recently used on
  client,    \* which clients take it for granted that they have a session
  passed,    \* how often the eviction time has passed
  answer     \* of the last request
vars == <<sessions, use, client, passed, answer>>

(***************************************************************************)
(* `isStale`: not used for longer than the eviction time. `isAged`: made   *)
(* before that. `isEvictable`: it was used since it is aged; the cache     *)
(* looks at the age when a session is used (evictableByAll).               *)
(***************************************************************************)
NoSession == [size |-> 0, isStale |-> FALSE, isAged |-> FALSE, isEvictable |-> FALSE]
NewSession(size) == [NoSession EXCEPT !.size = size]
Used(session, size) ==
  [session EXCEPT !.size = size, !.isStale = FALSE, !.isEvictable = session.isAged]

NoAnswer == [request |-> "none", client |-> "none", error |-> "NONE", isOpen |-> FALSE]
Idle == answer = NoAnswer

IsOpen(c) == sessions[c].size > 0
Open == {c \in Clients : IsOpen(c)}
IsPrivileged(c) == c \in Followers
Without(c) == SelectSeq(use, LAMBDA other : other # c)

Init ==
  /\ sessions = [c \in Clients |-> NoSession]
  /\ use = <<>>
  /\ client = [c \in Clients |-> FALSE]
  /\ passed = 0
  /\ answer = NoAnswer

(***************************************************************************)
(* FetchSessionCacheShard.tryEvict: the least recently used session if it  *)
(* is stale; else the least of those that may go at all, if it is less     *)
(* than the new one. A privileged session is more than one that is not,    *)
(* then the number of partitions decides. Which of equals goes is left     *)
(* open: Kafka's session ids are random.                                   *)
(***************************************************************************)
Rank(isPrivileged, size) == (IF isPrivileged THEN 1000 ELSE 0) + size
RankOf(c) == Rank(IsPrivileged(c), sessions[c].size)

IsStale(c) == sessions[c].isStale
\* A young session of a consumer must go for a follower's.
MayGoFor(c, new) == sessions[c].isEvictable \/ (IsPrivileged(new) /\ ~IsPrivileged(c))
IsLess(c, new, size) == RankOf(c) < Rank(IsPrivileged(new), size)

\* Whose session goes for a new one, of those that are open in this order of use; none: {}.
IsUnused(c) == IsStale(c)
Evicted(order, new, size) ==
  IF IsUnused(order[1]) THEN {order[1]}
  ELSE LET mayGo == {c \in {order[i] : i \in DOMAIN order} : MayGoFor(c, new)}
           least == {c \in mayGo : \A other \in mayGo : RankOf(c) <= RankOf(other)}
       IN  {c \in least : IsLess(c, new, size)}
Gone(evicted) == {evicted}

HasRoom(order) == Len(order) < Slots

(***************************************************************************)
(* Requests. A full one ends the session that it names first.              *)
(***************************************************************************)
Answer(request, c, error, isOpen) ==
  [request |-> request, client |-> c, error |-> error, isOpen |-> isOpen]

Opened(c, size, evicted) ==
  /\ sessions' = [other \in Clients |->
                    IF other = c THEN NewSession(size)
                    ELSE IF other \in evicted THEN NoSession
                    ELSE sessions[other]]
  /\ use' = Append(SelectSeq(Without(c), LAMBDA other : other \notin evicted), c)
  /\ client' = [client EXCEPT ![c] = TRUE]
  /\ answer' = Answer("Open", c, "NONE", TRUE)

Refused(c) ==
  /\ sessions' = [sessions EXCEPT ![c] = NoSession]
  /\ use' = Without(c)
  /\ client' = [client EXCEPT ![c] = FALSE]
  /\ answer' = Answer("Open", c, "NONE", FALSE)

OpenSession(c, size) ==
  /\ Idle
  /\ IF HasRoom(Without(c)) THEN Opened(c, size, {})
     ELSE IF Evicted(Without(c), c, size) = {} THEN Refused(c)
     ELSE \E evicted \in Evicted(Without(c), c, size) :
            Opened(c, size, Gone(evicted))
  /\ UNCHANGED passed

\* The session that a client names, if it was not evicted.
IsFound(c) == IsOpen(c)
OrderAfterUse(c) == Append(Without(c), c)
Continue(c, size) ==
  /\ Idle /\ client[c]
  /\ IF IsFound(c)
     THEN /\ sessions' = [sessions EXCEPT ![c] = Used(sessions[c], size)]
          /\ use' = OrderAfterUse(c)
          /\ answer' = Answer("Continue", c, "NONE", TRUE)
          /\ UNCHANGED client
     ELSE /\ answer' = Answer("Continue", c, "FETCH_SESSION_ID_NOT_FOUND", FALSE)
          /\ client' = [client EXCEPT ![c] = FALSE]
          /\ UNCHANGED <<sessions, use>>
  /\ UNCHANGED passed

Close(c) ==
  /\ Idle /\ client[c]
  /\ sessions' = [sessions EXCEPT ![c] = NoSession]
  /\ use' = Without(c)
  /\ client' = [client EXCEPT ![c] = FALSE]
  /\ answer' = Answer("Close", c, "NONE", FALSE)
  /\ UNCHANGED passed

LetEvictionTimePass ==
  /\ Idle /\ passed < Times /\ use # <<>>
  /\ passed' = passed + 1
  /\ sessions' = [c \in Clients |->
                    IF IsOpen(c) THEN [sessions[c] EXCEPT !.isStale = TRUE, !.isAged = TRUE]
                    ELSE sessions[c]]
  /\ UNCHANGED <<use, client, answer>>

TakeAnswer ==
  /\ ~Idle
  /\ answer' = NoAnswer
  /\ UNCHANGED <<sessions, use, client, passed>>

Next ==
  \/ \E c \in Clients : \E size \in Sizes[c] : OpenSession(c, size) \/ Continue(c, size)
  \/ \E c \in Clients : Close(c)
  \/ LetEvictionTimePass
  \/ TakeAnswer

(***************************************************************************)
(* What a client, and who set the slots, may rely on.                      *)
(***************************************************************************)
TypeOK ==
  /\ \A c \in Clients : sessions[c].size \in Sizes[c] \union {0}
  /\ Len(use) = Cardinality(Open) /\ {use[i] : i \in DOMAIN use} = Open
  /\ passed \in 0..Times

SlotsAreKept == Cardinality(Open) <= Slots

\* A client does not wait for news of a session that is gone.
EvictedIsTold == [][answer'.request = "Continue" /\ ~IsOpen(answer'.client)
                      => answer'.error # "NONE"]_vars

IsLost(c) == IsOpen(c) /\ sessions'[c].size = 0
\* Another client's request ended the session.
IsEvicted(c) == IsLost(c) /\ answer'.client # c

\* One session makes room for one.
OneGoesForOne == [][\A c, other \in Clients : IsEvicted(c) /\ IsEvicted(other) => c = other]_vars

\* Replication keeps its sessions, whatever consumers ask for.
FollowersStay ==
  [][\A c \in Followers : IsEvicted(c) => IsStale(c) \/ IsPrivileged(answer'.client)]_vars

\* A consumer's session lives for a while, unless a follower needs the slot.
YoungStay ==
  [][\A c \in Clients :
       IsEvicted(c)
         => sessions[c].isAged \/ (IsPrivileged(answer'.client) /\ ~IsPrivileged(c))]_vars

\* Clients of one kind do not take the slot from each other in turn.
LargerStay ==
  [][\A c \in Clients :
       IsEvicted(c) /\ IsPrivileged(c) = IsPrivileged(answer'.client)
         => IsStale(c) \/ sessions[c].size < sessions'[answer'.client].size]_vars

\* Who has fetched of late keeps the session before one who has not.
UnusedGoFirst ==
  [][\A c \in Clients :
       IsEvicted(c) => IsStale(c) \/ \A other \in Open \ {answer'.client} : ~IsStale(other)]_vars

\* A slot that nobody uses is not kept from a client that asks.
UnusedSlotIsGiven ==
  [][answer'.request = "Open" /\ ~answer'.isOpen
       => /\ Cardinality(Open \ {answer'.client}) = Slots
          /\ \A other \in Open \ {answer'.client} : ~IsStale(other)]_vars

\* A follower gets a session as long as a consumer has one.
FollowerIsServed ==
  [][answer'.request = "Open" /\ ~answer'.isOpen /\ IsPrivileged(answer'.client)
       => \A other \in Open \ {answer'.client} : IsPrivileged(other)]_vars
===============================================================================
