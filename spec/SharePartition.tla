---------------------------- MODULE SharePartition ----------------------------
(***************************************************************************)
(* One partition of a share group on the broker that leads it (KIP-932):   *)
(* kafka.server.share.SharePartition and InFlightState.                    *)
(*                                                                         *)
(* Members acquire records, each under a lock with a timer, and            *)
(* acknowledge them. An acknowledgement changes the state at once and is   *)
(* written to the share coordinator; until that write is answered the      *)
(* transition is under way, and may go back.                               *)
(*                                                                         *)
(*   a step         | in Kafka                                             *)
(*   ---------------+----------------------------------------------------- *)
(*   Acquire        | nextFetchOffset, canAcquireRecords, acquire          *)
(*   Acknowledge    | acknowledge, up to its write                         *)
(*   EndSession     | releaseAcquiredRecords, up to its write              *)
(*   CompleteWrite  | rollbackOrProcessStateUpdates, from the persister's  *)
(*                  | answer on; completeStateTransition                   *)
(*   ExpireLock     | releaseAcquisitionLockOnTimeout                      *)
(*   MoveLogStart   | updateCacheAndOffsets: a fetch was out of range      *)
(*                                                                         *)
(* Each record is a record batch of its own.                               *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
  Members,
  Records,         \* the log has the offsets 0 .. Records - 1
  DeliveryLimit,   \* group.share.delivery.count.limit
  MaxInFlight,     \* group.share.partition.max.record.locks
  FetchSizes,      \* max.poll.records of a fetch
  AckTypes,        \* of "ACCEPT", "RELEASE", "REJECT"
  AckSizes,        \* so many records are acknowledged at once
  MaxWrites,       \* under way at a time
  WriteFailures,   \* BOOLEAN
  LockTimeouts,    \* BOOLEAN
  SessionEnds,     \* BOOLEAN
  LogStartMoves    \* BOOLEAN

VARIABLES
  rec,        \* what the cache has of each record
  start,      \* startOffset
  end,        \* endOffset: the last offset in the cache, or the next one to fetch
  flag,       \* findNextFetchOffset: something may have to be given again
  writes,     \* under way, oldest first
  logStart,
  answer      \* of the acknowledgement, or of the end of a session, that the last step answered
vars == <<rec, start, end, flag, writes, logStart, answer>>

Offsets == 0..(Records - 1)
NoMember == "none"
States == {"NONE", "AVAILABLE", "ACQUIRED", "ACKNOWLEDGED", "ARCHIVED"}
Terminal == {"ACKNOWLEDGED", "ARCHIVED"}

\* Of a record: `owner` had it before the transition that is under way.
NotCached ==
  [state |-> "NONE", count |-> 0, member |-> NoMember, owner |-> NoMember, timer |-> "NONE"]

Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a > b THEN a ELSE b
Least(set) == CHOOSE x \in set : \A y \in set : x <= y
Greatest(set) == CHOOSE x \in set : \A y \in set : x >= y
CachedOf(records) == {o \in Offsets : records[o].state # "NONE"}
Cached == CachedOf(rec)
IsOngoing(r) == r.owner # NoMember
IsSettled(r) == r.state \in Terminal /\ ~IsOngoing(r)

-------------------------------------------------------------------------------
(***************************************************************************)
(* Fetching.                                                               *)
(***************************************************************************)
\* nextFetchOffset. A record under way is not offered (KAFKA-19463).
MayBeOffered(o) == rec[o].state = "AVAILABLE" /\ ~IsOngoing(rec[o])
Offered == {o \in Cached : MayBeOffered(o)}
NothingCachedAhead == Cached = {} \/ start > Greatest(Cached)
NextFetchOffset ==
  IF NothingCachedAhead THEN end
  ELSE IF flag /\ Offered # {} THEN Least(Offered) ELSE end + 1
FlagAfterLook == flag /\ ~NothingCachedAhead /\ Offered # {}

InFlight == IF Cached = {} THEN 0 ELSE end - start + 1
CanAcquireRecords == NextFetchOffset # end + 1 \/ InFlight < MaxInFlight
CanFetch == CanAcquireRecords /\ NextFetchOffset \in Offsets

\* lastOffsetAndMaxRecordsToAcquire (KAFKA-19808): at capacity nothing beyond the cache is taken.
IsAtCapacity == InFlight >= MaxInFlight
MostToAcquire(n) ==
  IF IsAtCapacity THEN Min(n, end - NextFetchOffset + 1) ELSE Min(n, MaxInFlight - InFlight)
LastToAcquire == IF IsAtCapacity THEN Min(Records - 1, end) ELSE Records - 1

MayBeAcquired(o) == rec[o].state = "AVAILABLE" /\ ~IsOngoing(rec[o])
Overlap == {o \in Cached : NextFetchOffset <= o /\ o <= LastToAcquire}
GivenAgain(n) ==
  LET free == {o \in Overlap : MayBeAcquired(o)}
  IN {o \in free : Cardinality({p \in free : p < o}) < MostToAcquire(n)}
GivenFirst(n) ==
  LET first == IF Overlap = {} THEN NextFetchOffset ELSE Greatest(Overlap) + 1
      most == MostToAcquire(n) - Cardinality(GivenAgain(n))
  IN first..Min(LastToAcquire, first + most - 1)
Acquired(n) == GivenAgain(n) \cup GivenFirst(n)

Acquire(m, n) ==
  /\ CanFetch
  /\ LET taken == Acquired(n)
     IN /\ rec' = [o \in Offsets |->
                    IF o \in taken
                    THEN [NotCached EXCEPT !.state = "ACQUIRED", !.count = rec[o].count + 1,
                                           !.member = m, !.timer = "RUNNING"]
                    ELSE rec[o]]
        /\ end' = IF taken = {} THEN end ELSE Max(end, Greatest(taken))
  /\ flag' = FlagAfterLook
  /\ answer' = "none"
  /\ UNCHANGED <<start, writes, logStart>>

-------------------------------------------------------------------------------
(***************************************************************************)
(* Acknowledgements and ends of sessions, up to their write.               *)
(***************************************************************************)
\* InFlightState.tryUpdateState: at the limit there is no further delivery.
Released(count) == IF count >= DeliveryLimit THEN "ARCHIVED" ELSE "AVAILABLE"
Target(o, type) ==
  CASE type = "ACCEPT" -> "ACKNOWLEDGED"
    [] type = "REJECT" -> "ARCHIVED"
    [] OTHER -> Released(rec[o].count)
\* InFlightState.startStateTransition.
Begun(o, state) ==
  [rec[o] EXCEPT !.state = state, !.member = NoMember, !.owner = rec[o].member]

Entries(records, offsets) ==
  {[offset |-> o, state |-> records[o].state, count |-> records[o].count] : o \in offsets}
Written(kind, records, offsets) ==
  writes' = Append(writes, [kind |-> kind, entries |-> Entries(records, offsets)])

\* When a transition begins that may give a record again: not before its write is answered.
FlagAtBegin(records, offsets) == flag
Begin(records, offsets) ==
  /\ rec' = records /\ Written("ack", records, offsets)
  /\ flag' = FlagAtBegin(records, offsets)
  /\ answer' = "none"
  /\ UNCHANGED <<start, end, logStart>>

MayAcknowledge(m, o) == rec[o].state = "ACQUIRED" /\ ~IsOngoing(rec[o]) /\ rec[o].member = m

\* Below the start an acknowledgement changes nothing, and succeeds.
Acknowledge(m, first, last, type) ==
  LET named == {o \in first..last : o >= start}
      records == [o \in Offsets |-> IF o \in named THEN Begun(o, Target(o, type)) ELSE rec[o]]
  IN /\ last \in Offsets /\ last - first + 1 \in AckSizes
     /\ Len(writes) < MaxWrites
     /\ named \subseteq Cached
     /\ IF named # {} /\ \A o \in named : MayAcknowledge(m, o)
        THEN Begin(records, named)
        ELSE /\ answer' = IF named = {} THEN "ok" ELSE "refused"
             /\ UNCHANGED <<rec, start, end, flag, writes, logStart>>

\* The delivery was one, although it was not acknowledged (KAFKA-19972).
CountAtSessionEnd(r) == r.count
ReleasedAtSessionEnd(r) == Released(r.count)
EndSession(m) ==
  LET held == {o \in Cached : rec[o].state = "ACQUIRED" /\ rec[o].member = m}
      released(o) ==
        [Begun(o, IF o < start THEN "ARCHIVED" ELSE ReleasedAtSessionEnd(rec[o]))
           EXCEPT !.count = IF o < start THEN rec[o].count ELSE CountAtSessionEnd(rec[o])]
      records == [o \in Offsets |-> IF o \in held THEN released(o) ELSE rec[o]]
  IN SessionEnds /\ held # {} /\ Len(writes) < MaxWrites /\ Begin(records, held)

-------------------------------------------------------------------------------
(***************************************************************************)
(* The start offset: maybeUpdateCachedStateAndOffsets.                     *)
(***************************************************************************)
\* All of the cache is settled: what follows its last record.
StartAfterAll(last) == Max(start, last + 1)
\* The first record that is not settled. The start never goes back (KAFKA-19859).
StartAt(first) == Max(start, first)

CanMoveStartOffset(records) ==
  LET below == {o \in CachedOf(records) : o <= start}
  IN below # {} /\ IsSettled(records[Greatest(below)])
Advanced(records) ==
  LET cached == CachedOf(records)
      settled == {o \in cached : \A p \in cached : p <= o => IsSettled(records[p])}
      rest == cached \ settled
      kept == [o \in Offsets |-> IF o \in settled THEN NotCached ELSE records[o]]
  IN IF ~CanMoveStartOffset(records) \/ settled = {}
     THEN [rec |-> records, start |-> start, end |-> end]
     ELSE IF rest = {}
     THEN [rec |-> kept, start |-> StartAfterAll(Greatest(cached)),
           end |-> StartAfterAll(Greatest(cached))]
     ELSE [rec |-> kept, start |-> StartAt(Least(rest)), end |-> end]
IsAdvanced(records) ==
  LET after == Advanced(records)
  IN rec' = after.rec /\ start' = after.start /\ end' = after.end

-------------------------------------------------------------------------------
(***************************************************************************)
(* Answers of writes: InFlightState.completeStateTransition.               *)
(***************************************************************************)
\* `archive` has taken the timer of a record under way.
IsArchivedMeanwhile(r) == r.timer = "NONE"
\* The lock has expired while the write was under way (KAFKA-19476).
IsExpiredMeanwhile(r) == r.timer = "EXPIRED"
AfterExpiry(o) == IF o < start THEN "ARCHIVED" ELSE Released(rec[o].count)

Committed(r) == [r EXCEPT !.owner = NoMember, !.timer = "NONE"]
RolledBack(o) ==
  LET r == rec[o]
  IN IF IsArchivedMeanwhile(r) THEN Committed(r)
     ELSE IF IsExpiredMeanwhile(r) THEN [Committed(r) EXCEPT !.state = AfterExpiry(o)]
     ELSE [r EXCEPT !.state = "ACQUIRED", !.member = r.owner, !.owner = NoMember]

OffsetsOf(write) == {e.offset : e \in write.entries}
\* What the start has passed is no longer cached; a released record tells so all the same.
GivesAgain(write, records, ok) ==
  \E e \in write.entries :
    IF rec[e.offset].state = "NONE" THEN ok /\ e.state = "AVAILABLE"
    ELSE records[e.offset].state = "AVAILABLE"
Without(sequence, n) == SubSeq(sequence, 1, n - 1) \o SubSeq(sequence, n + 1, Len(sequence))

CompleteWrite(n, ok) ==
  /\ n \in DOMAIN writes /\ (ok \/ WriteFailures)
  /\ writes' = Without(writes, n)
  /\ LET write == writes[n]
         isOwn == write.kind = "ack"
         records ==
           [o \in Offsets |->
             IF o \notin OffsetsOf(write) \/ ~isOwn \/ rec[o].state = "NONE" THEN rec[o]
             ELSE IF ok THEN Committed(rec[o]) ELSE RolledBack(o)]
     IN /\ IF ok \/ ~isOwn
           THEN IsAdvanced(records) ELSE rec' = records /\ UNCHANGED <<start, end>>
        /\ flag' = (flag \/ (isOwn /\ GivesAgain(write, records, ok)))
        /\ answer' = IF ~isOwn THEN "none" ELSE IF ok THEN "ok" ELSE "failed"
  /\ UNCHANGED logStart

-------------------------------------------------------------------------------
(***************************************************************************)
(* Time, and the log.                                                      *)
(***************************************************************************)
\* The time-out of a lock decides nothing while a transition is under way (KAFKA-19476).
TimeoutDecides(r) == r.state = "ACQUIRED"
ExpireLock(o) ==
  LET r == rec[o]
      state == IF o < start THEN "ARCHIVED" ELSE Released(r.count)
      records == [rec EXCEPT ![o] = [@ EXCEPT !.state = state, !.member = NoMember, !.timer = "NONE"]]
  IN /\ LockTimeouts /\ r.timer = "RUNNING" /\ Len(writes) < MaxWrites
     /\ IF TimeoutDecides(r)
        THEN /\ rec' = records /\ Written("timeout", records, {o})
             /\ flag' = (flag \/ state = "AVAILABLE")
        ELSE /\ rec' = [rec EXCEPT ![o].timer = "EXPIRED"]
             /\ UNCHANGED <<flag, writes>>
     /\ answer' = "none"
     /\ UNCHANGED <<start, end, logStart>>

\* archiveAvailableRecordsOnLsoMovement: all of them (KAFKA-19630).
IsBelow(to) == {o \in Cached : start <= o /\ o < to /\ rec[o].state = "AVAILABLE"}
ArchivedByLogStart(to) == IsBelow(to)
\* InFlightState.archive.
Archived(r) == [r EXCEPT !.state = "ARCHIVED", !.member = NoMember, !.timer = "NONE"]
MoveLogStart(to) ==
  /\ LogStartMoves /\ to > start /\ to <= Records
  /\ CanAcquireRecords /\ NextFetchOffset < to
  /\ rec' = [o \in Offsets |-> IF o \in ArchivedByLogStart(to) THEN Archived(rec[o]) ELSE rec[o]]
  /\ start' = to
  /\ end' = IF Cached = {} THEN to ELSE Max(end, to)
  /\ flag' = (FlagAfterLook \/ ArchivedByLogStart(to) # {})
  /\ logStart' = to
  /\ answer' = "none"
  /\ UNCHANGED writes

-------------------------------------------------------------------------------
Init ==
  /\ rec = [o \in Offsets |-> NotCached]
  /\ start = 0 /\ end = 0 /\ flag = FALSE
  /\ writes = <<>> /\ logStart = 0 /\ answer = "none"

Next ==
  \/ \E m \in Members, n \in FetchSizes : Acquire(m, n)
  \/ \E m \in Members, first \in Offsets, last \in Offsets, type \in AckTypes :
       Acknowledge(m, first, last, type)
  \/ \E m \in Members : EndSession(m)
  \/ \E n \in 1..MaxWrites, ok \in BOOLEAN : CompleteWrite(n, ok)
  \/ \E o \in Offsets : ExpireLock(o)
  \/ \E to \in 1..Records : MoveLogStart(to)

Spec == Init /\ [][Next]_vars

-------------------------------------------------------------------------------
(***************************************************************************)
(* What must hold.                                                         *)
(***************************************************************************)
Held == [
  state: States, count: 0..(DeliveryLimit + 1), member: Members \cup {NoMember},
  owner: Members \cup {NoMember}, timer: {"NONE", "RUNNING", "EXPIRED"}]
TypeOK ==
  /\ rec \in [Offsets -> Held]
  /\ start \in 0..Records /\ end \in 0..Records /\ logStart \in 0..Records
  /\ flag \in BOOLEAN
  /\ answer \in {"none", "ok", "refused", "failed"}

\* A record is delivered as often as the group allows, not oftener.
DeliveryBound == \A o \in Offsets : rec[o].count <= DeliveryLimit

\* The lock of a record ends: whoever holds it, its timer runs.
LockTimer ==
  \A o \in Cached : rec[o].state = "ACQUIRED" <=> rec[o].timer = "RUNNING" /\ ~IsOngoing(rec[o])

\* What is left behind the start is never given again.
LeftBehind == \A o \in Cached : o < start => rec[o].state # "AVAILABLE"

\* No record that waits to be given again is forgotten.
FlagIsSafe == ~flag => \A o \in Cached : ~MayBeAcquired(o)

\* A fetch that is let through finds a record; else it is tried again and again.
FetchFindsRecords == CanFetch => Acquired(1) # {}

\* The start is never behind that of the log, as far as a fetch has heard of it.
StartInLog == logStart <= start

LimitIsHard == InFlight <= MaxInFlight

(***************************************************************************)
(* The same for steps.                                                     *)
(***************************************************************************)
\* A member has a record until it acknowledges, leaves, or its time is over.
LockedByOne ==
  [][\A o \in Offsets :
       rec[o].state = "ACQUIRED" /\ rec'[o].state = "ACQUIRED" => rec'[o] = rec[o]]_vars

\* A transition under way: the record is not given out.
OngoingIsPrivate ==
  [][\A o \in Offsets : IsOngoing(rec[o]) => rec'[o].count <= rec[o].count]_vars

\* What was accepted, rejected or given up is never given again.
AcceptedIsFinal ==
  [][\A o \in Offsets :
       /\ IsSettled(rec[o]) => rec'[o].state \in {"NONE", rec[o].state}
       /\ (o < start /\ rec[o].state = "NONE") => rec'[o].state = "NONE"]_vars
AnsweredIsDone ==
  [][\A n \in DOMAIN writes :
       (answer' = "ok" /\ writes' = Without(writes, n)) =>
         \A e \in writes[n].entries :
           e.state \in Terminal => rec'[e.offset].state \in Terminal \cup {"NONE"}]_vars

\* The start passes what is settled, or below the start of the log; it never goes back.
StartIsTerminal ==
  [][/\ start' >= start
     /\ \A o \in start..(start' - 1) :
          o < logStart' \/ IsSettled(rec[o])
            \/ \E n \in DOMAIN writes :
                 \E e \in writes[n].entries : e.offset = o /\ e.state \in Terminal]_vars

\* An acknowledgement that is refused leaves all as it was.
AllOrNothing == [][answer' = "refused" => rec' = rec /\ writes' = writes]_vars

\* A session that ends counts for a delivery, as any other end does.
DeliveriesCount == [][\A o \in Offsets : rec'[o].state # "NONE" => rec'[o].count >= rec[o].count]_vars
===============================================================================
