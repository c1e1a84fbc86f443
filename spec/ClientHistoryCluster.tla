------------------------ MODULE ClientHistoryCluster -------------------------
(***************************************************************************)
(* The smallest cluster that makes histories of clients: a leader's log    *)
(* for each partition, what of it is exposed, transactions that one        *)
(* decision and one marker for each partition end, and the positions of    *)
(* readers. It has no brokers: a fail-over cuts the log. What clients see  *)
(* of it is in four variables, and nothing else is asked of a real one.    *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  Acks,                \* "all" or "1": when the leader acknowledges
  Isolation,           \* "read_committed" or "read_uncommitted"
  Idempotence,         \* whether producers number their batches
  UncleanElection,     \* whether a replica outside the ISR may lead
  Deletion,            \* whether records are deleted: retention, DeleteRecords, compaction
  TransactionVersion,  \* 1, or 2 (KIP-890): whether an end is of one transaction only
  Partitions,
  Values,              \* what is sent, each value once
  TargetOf,            \* by value: its partition
  TransactionOf,       \* by value: its transaction, or NoTransaction
  Together,            \* whether what follows in a process is of one operation, or of several
  Readers,
  Committers           \* of them those that commit their positions in a group

NoOffset == -1
NoValue == "none"
NoTransaction == "none"

Transactions == {TransactionOf[v] : v \in Values} \ {NoTransaction}

VARIABLES
  log,        \* by partition: the values in the leader's log
  exposed,    \* by partition: the high watermark
  inFlight,   \* by value: where the leader has last appended it, or NoOffset
  decision,   \* by transaction: "none", "commit" or "abort"
  marked,     \* by transaction: the partitions that have its marker
  position,   \* by reader and partition: what it reads next
  last,       \* by reader and partition: what it has read last since it was assigned
  stored,     \* by partition: the group's committed position
  clock,      \* so many commits and fetches of positions have been answered

  (*************************************************************************)
  (* What clients see: sets of records, each of one value sent, of one     *)
  (* value read, of one position committed, and of one position fetched.   *)
  (*************************************************************************)
  sent,       \* [id, operation, transactional, partition, value, offset, outcome, after, within, renewed]
  read,       \* [operation, partition, value, offset, after, within]
  committed,  \* [partition, offset, outcome, processed, after, began, ended]
  fetched     \* [partition, offset, began, ended]

clusterVars == <<log, exposed, inFlight, decision, marked>>
readerVars == <<position, last, read>>
groupVars == <<stored, clock, committed, fetched>>
allVars == <<log, exposed, inFlight, decision, marked, position, last, stored, clock,
             sent, read, committed, fetched>>

Init ==
  /\ log = [p \in Partitions |-> <<>>]
  /\ exposed = [p \in Partitions |-> 0]
  /\ inFlight = [v \in Values |-> NoOffset]
  /\ decision = [t \in Transactions |-> "none"]
  /\ marked = [t \in Transactions |-> {}]
  /\ position = [r \in Readers |-> [p \in Partitions |-> 0]]
  /\ last = [r \in Readers |-> [p \in Partitions |-> NoOffset]]
  /\ stored = [p \in Partitions |-> 0]
  /\ clock = 0
  /\ sent = {}
  /\ read = {}
  /\ committed = {}
  /\ fetched = {}

(***************************************************************************)
(* Producers. `after` is the offset of what the process was answered last. *)
(***************************************************************************)
IsTransactional(v) == TransactionOf[v] # NoTransaction

SentRecord(v) == CHOOSE s \in sent : s.value = v

IsSent(v) == \E s \in sent : s.value = v

\* A producer has one batch in flight.
NothingInFlight == \A s \in sent : s.outcome # "unknown" \/ s.transactional

Send(v) ==
  LET p == TargetOf[v]
  IN  /\ ~IsSent(v) /\ NothingInFlight
      /\ IsTransactional(v) => decision[TransactionOf[v]] = "none"
      /\ log' = [log EXCEPT ![p] = Append(@, v)]
      /\ inFlight' = [inFlight EXCEPT ![v] = Len(log[p])]
      /\ sent' = sent \union
           {[id |-> v, operation |-> IF IsTransactional(v) THEN TransactionOf[v] ELSE v,
             transactional |-> IsTransactional(v), partition |-> p, value |-> v,
             offset |-> NoOffset, outcome |-> "unknown", after |-> NoOffset,
             within |-> Together, renewed |-> FALSE]}
      /\ UNCHANGED <<exposed, decision, marked>>
      /\ UNCHANGED readerVars /\ UNCHANGED groupVars

\* With acks=all what is exposed is acknowledged.
MayAcknowledge(v) ==
  /\ inFlight[v] # NoOffset
  /\ Acks = "1" \/ inFlight[v] < exposed[TargetOf[v]]

LastAcknowledged(p) ==
  LET ends == {s \in sent : s.partition = p /\ s.outcome = "ok"}
      newest == {s \in ends : \A t \in ends : s.offset >= t.offset}
  IN  IF ends = {} THEN NoOffset ELSE (CHOOSE s \in newest : TRUE).offset

AnsweredOffset(v) == inFlight[v]

AnsweredOutcome(v) == "ok"

Acknowledge(v) ==
  LET s == SentRecord(v)
  IN  /\ IsSent(v) /\ ~s.transactional /\ s.outcome = "unknown" /\ MayAcknowledge(v)
      /\ sent' = (sent \ {s}) \union
           {[s EXCEPT !.outcome = AnsweredOutcome(v), !.offset = AnsweredOffset(v),
                      !.after = LastAcknowledged(s.partition)]}
      /\ UNCHANGED clusterVars /\ UNCHANGED readerVars /\ UNCHANGED groupVars

\* A producer without an answer sends again. With numbers a leader finds the batch that it has.
FindsBatch(v) == Idempotence

Resend(v) ==
  LET p == TargetOf[v]
      has == {i \in 1..Len(log[p]) : log[p][i] = v}
  IN  /\ IsSent(v) /\ SentRecord(v).outcome = "unknown" /\ ~IsTransactional(v)
      /\ Cardinality(has) < 2 /\ ~(FindsBatch(v) /\ has # {})
      /\ log' = [log EXCEPT ![p] = Append(@, v)]
      /\ inFlight' = [inFlight EXCEPT ![v] = Len(log[p])]
      /\ UNCHANGED <<exposed, decision, marked, sent>>
      /\ UNCHANGED readerVars /\ UNCHANGED groupVars

(***************************************************************************)
(* Replication.                                                            *)
(***************************************************************************)
Expose(p) ==
  /\ exposed[p] < Len(log[p])
  /\ exposed' = [exposed EXCEPT ![p] = @ + 1]
  /\ UNCHANGED <<log, inFlight, decision, marked, sent>>
  /\ UNCHANGED readerVars /\ UNCHANGED groupVars

\* The new leader has all that was exposed, unless it is elected from outside the ISR.
KeptByElection(p) == IF UncleanElection THEN 0 ELSE exposed[p]

FailOver(p, end) ==
  /\ end >= KeptByElection(p) /\ end < Len(log[p])
  /\ \A i \in 1..Len(log[p]) : ~IsTransactional(log[p][i])
  /\ log' = [log EXCEPT ![p] = SubSeq(@, 1, end)]
  /\ exposed' = [exposed EXCEPT ![p] = IF @ < end THEN @ ELSE end]
  \* An answer that is on its way still comes, with acks=1; a producer with acks=all hears nothing.
  /\ inFlight' = [v \in Values |->
       IF Acks = "all" /\ TargetOf[v] = p /\ inFlight[v] >= end THEN NoOffset ELSE inFlight[v]]
  /\ UNCHANGED <<decision, marked, sent>>
  /\ UNCHANGED readerVars /\ UNCHANGED groupVars

(***************************************************************************)
(* Transactions. The decision comes first, then the answer and the markers *)
(* in any order: a transaction becomes visible partition by partition.     *)
(***************************************************************************)
ValuesOf(t) == {v \in Values : TransactionOf[v] = t}

PartitionsOf(t) == {TargetOf[v] : v \in {w \in ValuesOf(t) : IsSent(w)}}

IsReplicated(t) == \A v \in ValuesOf(t) : IsSent(v) => inFlight[v] < exposed[TargetOf[v]]

Decide(t, result) ==
  /\ decision[t] = "none" /\ PartitionsOf(t) # {}
  /\ result = "commit" => IsReplicated(t)
  /\ decision' = [decision EXCEPT ![t] = result]
  /\ UNCHANGED <<log, exposed, inFlight, marked, sent>>
  /\ UNCHANGED readerVars /\ UNCHANGED groupVars

\* What a decision tells the client. The mutants tell something else.
OutcomeOf(t) == IF decision[t] = "commit" THEN "ok" ELSE "fail"

AnswerEnd(t) ==
  /\ decision[t] # "none"
  /\ \E s \in sent : s.operation = t /\ s.outcome = "unknown"
  /\ sent' = {IF s.operation = t
              THEN [s EXCEPT !.outcome = OutcomeOf(t), !.offset = inFlight[s.value]]
              ELSE s : s \in sent}
  /\ UNCHANGED clusterVars /\ UNCHANGED readerVars /\ UNCHANGED groupVars

Mark(t, p) ==
  /\ decision[t] # "none" /\ p \in PartitionsOf(t) \ marked[t]
  /\ marked' = [marked EXCEPT ![t] = @ \union {p}]
  /\ UNCHANGED <<log, exposed, inFlight, decision, sent>>
  /\ UNCHANGED readerVars /\ UNCHANGED groupVars

(***************************************************************************)
(* Readers.                                                                *)
(***************************************************************************)
IsOpen(p, offset) ==
  LET t == TransactionOf[log[p][offset + 1]]
  IN  t # NoTransaction /\ p \notin marked[t]

\* The last stable offset: what is below it is decided.
StableEnd(p) ==
  LET open == {o \in 0..(exposed[p] - 1) : IsOpen(p, o)}
  IN  IF open = {} THEN exposed[p] ELSE CHOOSE o \in open : \A q \in open : o <= q

ReadableEnd(p) == IF Isolation = "read_committed" THEN StableEnd(p) ELSE exposed[p]

IsFiltered(p, offset) ==
  LET t == TransactionOf[log[p][offset + 1]]
  IN  Isolation = "read_committed" /\ t # NoTransaction /\ decision[t] = "abort"

\* One record, or one that the filter takes out. A transaction reads too: `t` is its operation.
NextPosition(r, p) == position[r][p] + 1

Reading(p, offset) == log[p][offset + 1]

MayRead(t) == IF t = NoTransaction THEN TRUE ELSE decision[t] = "none" /\ PartitionsOf(t) # {}

Poll(r, p, t) ==
  LET offset == position[r][p]
  IN  /\ offset < ReadableEnd(p) /\ MayRead(t)
      /\ position' = [position EXCEPT ![r][p] = NextPosition(r, p)]
      /\ IF IsFiltered(p, offset) THEN UNCHANGED <<read, last>>
         ELSE /\ last' = [last EXCEPT ![r][p] = offset]
              /\ read' = read \union
                   {[operation |-> IF t = NoTransaction THEN r ELSE t, partition |-> p,
                     value |-> Reading(p, offset), offset |-> offset,
                     after |-> last[r][p], within |-> Together]}
      /\ UNCHANGED clusterVars /\ UNCHANGED sent /\ UNCHANGED groupVars

(***************************************************************************)
(* Groups. A commit and a fetch of a position are one step each here.      *)
(***************************************************************************)
PositionToCommit(r, p) == position[r][p]

\* What a member committed before: if there is one, and as long as nobody takes over.
CommittedBefore(p) ==
  IF Cardinality(Committers) = 1 /\ committed # {} /\ fetched = {} THEN stored[p] ELSE NoOffset

CommitOf(r, p) ==
  [partition |-> p, offset |-> PositionToCommit(r, p), outcome |-> "ok", processed |-> last[r][p],
   after |-> CommittedBefore(p), began |-> clock, ended |-> clock]

CommitPosition(r, p) ==
  /\ r \in Committers /\ last[r][p] # NoOffset /\ stored[p] < position[r][p]
  /\ stored' = [stored EXCEPT ![p] = PositionToCommit(r, p)]
  /\ committed' = committed \union {CommitOf(r, p)}
  /\ clock' = clock + 1
  /\ UNCHANGED fetched
  /\ UNCHANGED clusterVars /\ UNCHANGED sent /\ UNCHANGED readerVars

\* A member that is assigned the partition begins at the group's position.
StoredPosition(p) == stored[p]

FetchPosition(r, p) ==
  /\ r \in Committers /\ committed # {} /\ Cardinality(fetched) < 1
  /\ fetched' = fetched \union
       {[partition |-> p, offset |-> StoredPosition(p), began |-> clock, ended |-> clock]}
  /\ clock' = clock + 1
  /\ position' = [position EXCEPT ![r][p] = StoredPosition(p)]
  /\ last' = [last EXCEPT ![r][p] = NoOffset]
  /\ UNCHANGED <<read, stored, committed>>
  /\ UNCHANGED clusterVars /\ UNCHANGED sent

ProducerNext == \E v \in Values : Send(v) \/ Acknowledge(v) \/ Resend(v)

TransactionNext ==
  \E t \in Transactions :
    \/ \E result \in {"commit", "abort"} : Decide(t, result)
    \/ AnswerEnd(t)
    \/ \E p \in Partitions : Mark(t, p)

Lengths == 0..(2 * Cardinality(Values))

ReaderNext ==
  \E p \in Partitions :
    \/ Expose(p)
    \/ \E end \in Lengths : FailOver(p, end)
    \/ \E r \in Readers :
         \/ \E t \in Transactions \union {NoTransaction} : Poll(r, p, t)
         \/ CommitPosition(r, p)
         \/ FetchPosition(r, p)

Next == ProducerNext \/ TransactionNext \/ ReaderNext
==============================================================================
