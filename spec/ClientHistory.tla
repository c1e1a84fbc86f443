---------------------------- MODULE ClientHistory ----------------------------
(***************************************************************************)
(* What clients may see of a cluster: what must hold of what they sent,    *)
(* read and committed. Nothing here is of a broker's inside: `kconform     *)
(* history` asks these formulas of the logs of real clients.               *)
(*                                                                         *)
(* A rule has two formulas. The bare one says what was not seen. The rule  *)
(* says under which configuration it may not be seen: where the bare one   *)
(* is false and the rule true, what was seen is allowed there.             *)
(*                                                                         *)
(* An outcome may be "unknown". Each formula takes it as it suits the      *)
(* cluster: only "ok" promises a record, only "fail" promises none.        *)
(***************************************************************************)
EXTENDS ClientHistoryCluster

Outcomes == {"ok", "fail", "unknown"}

OffsetsOrNone == {NoOffset} \union Nat

TypeOK ==
  /\ \A s \in sent : s.outcome \in Outcomes /\ s.offset \in OffsetsOrNone
  /\ \A r \in read : r.offset \in Nat /\ r.after \in OffsetsOrNone
  /\ \A c \in committed : c.offset \in Nat /\ c.processed \in OffsetsOrNone
  /\ \A f \in fetched : f.offset \in Nat
  /\ \A p \in Partitions : exposed[p] <= Len(log[p])

(***************************************************************************)
(* Words.                                                                  *)
(***************************************************************************)

\* Two of `sent` and `read` are of one record, as far as values tell it.
SameValue(a, b) == a.partition = b.partition /\ a.value = b.value /\ a.value # NoValue

\* An application that sends a value twice has two records of it.
SentOnce(s) == \A t \in sent : SameValue(s, t) => s.id = t.id

\* A record without a value is known by its place.
IsReadAs(s, r) ==
  IF NoValue \in {s.value, r.value} THEN s.partition = r.partition /\ s.offset = r.offset
                                    ELSE SameValue(s, r)

IsRead(s) == \E r \in read : IsReadAs(s, r)

\* Some reader has read at this place, or has gone over it without a stop.
IsPassed(s) ==
  \E r \in read :
    /\ r.partition = s.partition
    /\ \/ r.offset = s.offset
       \/ r.after # NoOffset /\ r.after < s.offset /\ s.offset < r.offset

IsPlaced(s) == s.outcome = "ok" /\ s.offset # NoOffset

\* Configurations that keep what was acknowledged, and what was exposed.
KeepsExposed == ~UncleanElection
KeepsAcknowledged == Acks = "all" /\ KeepsExposed
ReadsCommitted == Isolation = "read_committed"

(***************************************************************************)
(* Replication: one log, whoever leads.                                    *)
(***************************************************************************)
ReadsAgree ==
  \A a, b \in read :
    a.partition = b.partition /\ a.offset = b.offset /\ NoValue \notin {a.value, b.value} =>
      a.value = b.value

\* Whatever somebody has read at an offset, nobody reads another record there.
OneRecordPerOffset == KeepsExposed => ReadsAgree

AnswersAgree ==
  \A s \in sent : IsPlaced(s) /\ s.value # NoValue =>
    /\ \A r \in read : r.partition = s.partition /\ r.offset = s.offset => r.value \in {s.value, NoValue}
    /\ \A t \in sent : IsPlaced(t) /\ t.partition = s.partition /\ t.offset = s.offset =>
                         t.value \in {s.value, NoValue}

\* The offset that a producer was told is the record's, and no other's.
AcknowledgedOffsetIsKept == KeepsAcknowledged => AnswersAgree

NoneIsLost == \A s \in sent : IsPlaced(s) /\ IsPassed(s) => IsRead(s)

\* What was acknowledged is there for whoever reads past its place.
AcknowledgedIsKept == KeepsAcknowledged /\ ~Deletion => NoneIsLost

EachIsSeen == \A s \in sent : s.outcome = "ok" => IsRead(s) \/ (IsPlaced(s) /\ IsPassed(s))

\* Not a rule but a question that reading on decides: nobody has come by yet.
AcknowledgedIsSeen == EachIsSeen

(***************************************************************************)
(* Producers: once, and in order.                                          *)
(***************************************************************************)
Places(s) ==
  {r.offset : r \in {q \in read : SameValue(s, q)}}
    \union {t.offset : t \in {u \in sent : SameValue(s, u) /\ IsPlaced(u)}}

IsDoubled(s) == SentOnce(s) /\ Cardinality(Places(s)) > 1

NoneIsDoubled == \A s \in sent : ~IsDoubled(s)

\* An idempotent producer's record is in the log once. A producer that has given a batch up may
\* take a new epoch and send again what is in flight: its records are `renewed`.
IdempotentIsWrittenOnce ==
  Idempotence /\ KeepsExposed => \A s \in sent : ~s.renewed => ~IsDoubled(s)

GoesBack(s) == IsPlaced(s) /\ s.after # NoOffset /\ s.offset <= s.after

SendsGrowWithin == \A s \in sent : s.within => ~GoesBack(s)

SendsGrowBetween == \A s \in sent : ~s.within => ~GoesBack(s)

\* What is sent together, or while another send is out, keeps its order if batches are numbered.
SentTogetherKeepsOrder ==
  Idempotence /\ KeepsAcknowledged => \A s \in sent : s.within /\ ~s.renewed => ~GoesBack(s)

\* What is sent after an answer lies behind it.
SentAfterAnswerLiesBehind == KeepsAcknowledged => SendsGrowBetween

(***************************************************************************)
(* Readers: forward, and nothing left out.                                 *)
(***************************************************************************)
Skips(r) ==
  /\ r.after # NoOffset
  /\ \E q \in read : q.partition = r.partition /\ r.after < q.offset /\ q.offset < r.offset

NoneIsSkippedWithin == \A r \in read : r.within => ~Skips(r)

NoneIsSkippedBetween == \A r \in read : ~r.within => ~Skips(r)

\* Records of one poll follow each other in the log.
PollIsContiguous == KeepsExposed /\ ~Deletion => NoneIsSkippedWithin

\* A poll begins where the last one has ended, as long as the partition stays assigned.
PollsAreContiguous == KeepsExposed /\ ~Deletion => NoneIsSkippedBetween

StepsBack(r) == r.after # NoOffset /\ r.offset <= r.after

ReadsGrowWithin == \A r \in read : r.within => ~StepsBack(r)

ReadsGrowBetween == \A r \in read : ~r.within => ~StepsBack(r)

PollGoesForward == ReadsGrowWithin

\* A reader's position goes back only if it is reset: after a truncation, or by its application.
PollsGoForward == KeepsExposed => ReadsGrowBetween

(***************************************************************************)
(* Groups: committed positions.                                            *)
(***************************************************************************)
Overwritten(c, f) ==
  \E d \in committed :
    /\ d.partition = c.partition /\ d.outcome = "ok"
    /\ c.ended < d.began /\ d.ended < f.began

\* Commits of unknown outcome may still take effect: they have no end.
PositionsAreKept ==
  \A f \in fetched :
    (\E c \in committed : c.partition = f.partition /\ c.outcome = "ok" /\ c.ended < f.began) =>
      \E c \in committed :
        /\ c.partition = f.partition /\ c.offset = f.offset /\ c.outcome # "fail"
        /\ c.began <= f.ended /\ ~Overwritten(c, f)

\* Whoever asks for the group's position hears the newest that was acknowledged, or a newer one.
CommittedPositionIsKept == KeepsExposed => PositionsAreKept

CommitsGrow == \A c \in committed : c.after # NoOffset => c.offset >= c.after

\* A member that keeps a partition does not commit less than it has committed.
CommittedPositionGoesForward == CommitsGrow

NoneIsCommittedUnread ==
  \A c \in committed : c.outcome = "ok" /\ c.processed # NoOffset =>
    ~\E r \in read : r.partition = c.partition /\ c.processed < r.offset /\ r.offset < c.offset

\* A member commits what it was given, and nothing beyond: the next owner would not read it.
CommittedIsProcessed == KeepsExposed /\ ~Deletion => NoneIsCommittedUnread

(***************************************************************************)
(* Transactions.                                                           *)
(***************************************************************************)
NoneAbortedIsRead ==
  \A s \in sent : s.outcome = "fail" /\ s.transactional /\ SentOnce(s) => ~IsRead(s)

\* Before version 2 a late end can commit the next transaction of the same epoch (KAFKA-17754).
EndsItsOwn == TransactionVersion >= 2

AbortedIsNotRead == ReadsCommitted /\ EndsItsOwn => NoneAbortedIsRead

NoneRefusedIsRead ==
  \A s \in sent : s.outcome = "fail" /\ ~s.transactional /\ SentOnce(s) => ~IsRead(s)

\* A send that has failed for good has left nothing behind.
RefusedIsNotAppended == NoneRefusedIsRead

NoneReadsItself ==
  \A s \in sent, r \in read :
    s.transactional /\ SameValue(s, r) /\ SentOnce(s) => s.operation # r.operation

\* A transaction does not read what it has not committed yet.
UncommittedIsNotRead == ReadsCommitted => NoneReadsItself

\* A transaction of which a value was read is committed, whatever its client was told.
IsProven(s) ==
  s.transactional /\ \E t \in sent : t.operation = s.operation /\ SentOnce(t) /\ IsRead(t)

NoneIsTorn ==
  \A s \in sent :
    s.outcome = "unknown" /\ s.offset # NoOffset /\ IsProven(s) /\ IsPassed(s) => IsRead(s)

TransactionIsWhole == ReadsCommitted /\ EndsItsOwn /\ KeepsExposed /\ ~Deletion => NoneIsTorn

ReadsFrom(o, p) ==
  \E s \in sent, r \in read :
    /\ s.operation = p /\ r.operation = o /\ s.transactional /\ SameValue(s, r) /\ SentOnce(s)

\* In a set without a cycle somebody reads from none of the others.
NoneReadInACircle ==
  LET operations == {s.operation : s \in {t \in sent : t.transactional}}
  IN  \A circle \in SUBSET operations \ {{}} :
        \E o \in circle : \A p \in circle \ {o} : ~ReadsFrom(o, p)

\* Who reads from a transaction ends after it: no two can have read from each other.
ReadTransactionsEndedBefore == ReadsCommitted => NoneReadInACircle

(***************************************************************************)
(* Situations.                                                             *)
(***************************************************************************)
OneHasReadAll == \E r \in Readers : Cardinality({q \in read : q.operation = r}) = Cardinality(Values)

AcknowledgedBeforeExposed == \E v \in Values : IsSent(v) /\ SentRecord(v).outcome = "ok" /\ ~IsRead(SentRecord(v))

VisibleInPart ==
  \E t \in Transactions : decision[t] = "commit" /\ marked[t] # {} /\ marked[t] # PartitionsOf(t)

AbortedIsPassed == \E t \in Transactions : decision[t] = "abort" /\ \E r \in Readers, p \in PartitionsOf(t) :
                     position[r][p] > 0
==============================================================================
