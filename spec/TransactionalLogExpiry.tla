------------------------ MODULE TransactionalLogExpiry ------------------------
(***************************************************************************)
(* The partition of TransactionalLog, written by a transactional id that   *)
(* has expired and by whoever took it: each has a producer id of its own.  *)
(* The partition forgets producers that were silent for                    *)
(* producer.id.expiration.ms; markers of the old id may come late.         *)
(*                                                                         *)
(* Kafka: ProducerStateManager.removeExpiredProducers, a task of the       *)
(* scheduler; ProducerAppendInfo.appendEndTxnMarker of a producer that is  *)
(* not known; rebuildProducerState after a truncation.                     *)
(*                                                                         *)
(* The process may stop in order, and the next one loads the snapshot that *)
(* it has left. A snapshot has what is open, and no transaction that has   *)
(* ended above the high watermark.                                         *)
(*                                                                         *)
(* Who may begin a transaction is the coordinator's business: see          *)
(* TransactionExpiry.                                                      *)
(***************************************************************************)
EXTENDS TransactionalLog

CONSTANTS
  ProducersExpire,   \* producer.id.expiration.ms may be over
  Restarts           \* the process may stop, once

(***************************************************************************)
(* variable | field                                                        *)
(* ---------+------------------------------------------------------------- *)
(* known    | ProducerStateManager.activeProducers                         *)
(* loaded   | where the log ended that the process has loaded; Kafka keeps  *)
(*          | no such field, and no adapter shows it                      *)
(***************************************************************************)
VARIABLES known, loaded

expiryVars == <<vars, known, loaded>>
ExpiryInit == Init /\ known = {} /\ loaded = 0

\* An open transaction keeps its producer, however long it is silent (isProducerExpired).
MayBeForgotten(p) == ongoing[p] = NoOffset
ExpireProducers ==
  /\ ProducersExpire /\ \E p \in known : MayBeForgotten(p)
  /\ known' = {p \in known : ~MayBeForgotten(p)}
  /\ UNCHANGED <<vars, loaded>>

Produce(p) == AppendData(p) /\ known' = known \union {p} /\ UNCHANGED loaded

\* A marker of a producer that is not known is appended and ends nothing; the producer is known by it.
EndsOf(p, kind) == AppendMarker(p, kind)
EndTransaction(p, kind) == EndsOf(p, kind) /\ known' = known \union {p} /\ UNCHANGED loaded

Replicate(hw) == AdvanceHighWatermark(hw) /\ UNCHANGED <<known, loaded>>
Read(size) == Fetch(size) /\ UNCHANGED <<known, loaded>>

\* UnifiedLog.close, and a load of the snapshot that it writes; LogLoader.recoverSegment writes one as
\* well, behind a process that died. The high watermark comes from its checkpoint, which may lag.
Restart(hw) ==
  /\ Restarts /\ loaded = 0 /\ leaderChanges = 0
  /\ log # <<>> /\ hw <= highWatermark
  /\ highWatermark' = hw
  /\ unreplicated' = {}
  /\ loaded' = Len(log)
  /\ UNCHANGED <<log, logStart, ongoing, abortIndex, leaderChanges, known>>
  /\ UNCHANGED consumer

\* A replica truncates, and reads its log again; not where it knows no producer, and no marker that
\* may be cut off (ProducerStateManager.isEmpty): nothing is open there. Of markers that it has
\* loaded it does not know whether they may be, so there it reads in any case.
ProducersIn(records) == {records[i].producer : i \in DOMAIN records} \intersect Producers
ReadsAgain(end) == known # {} \/ unreplicated # {} \/ end < loaded
\* Above the snapshot at `loaded` it would read from there on: TransactionalLogRestarts has that.
Truncate(end) ==
  /\ leaderChanges < MaxLeaderChanges
  /\ highWatermark <= end /\ end < Len(log) /\ (loaded # 0 => end < loaded)
  /\ LET records == SubSeq(log, 1, end) IN
       /\ log' = records
       /\ abortIndex' = AbortIndexOf(records)
       /\ IF ReadsAgain(end)
          THEN /\ ongoing' = OngoingOf(records)
               /\ unreplicated' = UnreplicatedOf(records, highWatermark)
               /\ known' = ProducersIn(records)
          ELSE /\ ongoing' = [p \in Producers |-> NoOffset]
               /\ unreplicated' = {}
               /\ known' = {}
  /\ leaderChanges' = leaderChanges + 1
  /\ UNCHANGED <<highWatermark, logStart, loaded>>
  /\ UNCHANGED consumer

ExpiryNext ==
  \/ ExpireProducers
  \/ \E size \in PieceSizes : Read(size)
  \/ \E hw \in Lengths : Restart(hw)
  \/ \E p \in Producers : Produce(p)
  \/ \E p \in Producers, kind \in MarkerKinds : EndTransaction(p, kind)
  \/ \E hw \in Lengths : Replicate(hw)
  \/ \E end \in {0} \union Lengths : Truncate(end)

(***************************************************************************)
(* What must hold, besides what TransactionalLog says.                     *)
(***************************************************************************)
\* Nothing is open of a producer that is forgotten: its marker ends what it has opened.
OpenIsKnown == \A p \in Producers : ongoing[p] # NoOffset => p \in known

(***************************************************************************)
(* Situations worth being in.                                              *)
(***************************************************************************)
ForgottenBesideOpen ==
  \E p, q \in Producers : /\ MarkersOf(log, p) # {} /\ p \notin known
                          /\ ongoing[q] # NoOffset
LateMarkerOfForgotten ==
  \E p \in Producers : \E i \in MarkersOf(log, p) :
    /\ EndedBy(log, i) = {} /\ p \in known
    /\ \E q \in Producers \ {p} : ongoing[q] # NoOffset
\* Kafka's classes read nothing here (the deviation forgotten-open-transaction).
LoadedAndForgotten ==
  known = {} /\ unreplicated = {} /\ UnreplicatedOf(log, highWatermark) # {}
===============================================================================
