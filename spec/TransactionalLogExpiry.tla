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
(* Who may begin a transaction is the coordinator's business: see          *)
(* TransactionExpiry.                                                      *)
(***************************************************************************)
EXTENDS TransactionalLog

CONSTANT ProducersExpire   \* producer.id.expiration.ms may be over

(***************************************************************************)
(* variable | field                                                        *)
(* ---------+------------------------------------------------------------- *)
(* known    | ProducerStateManager.activeProducers                         *)
(***************************************************************************)
VARIABLE known

expiryVars == <<vars, known>>
ExpiryInit == Init /\ known = {}

\* An open transaction keeps its producer, however long it is silent (isProducerExpired).
MayBeForgotten(p) == ongoing[p] = NoOffset
ExpireProducers ==
  /\ ProducersExpire /\ \E p \in known : MayBeForgotten(p)
  /\ known' = {p \in known : ~MayBeForgotten(p)}
  /\ UNCHANGED vars

Produce(p) == AppendData(p) /\ known' = known \union {p}

\* A marker of a producer that is not known is appended and ends nothing; the producer is known by it.
EndsOf(p, kind) == AppendMarker(p, kind)
EndTransaction(p, kind) == EndsOf(p, kind) /\ known' = known \union {p}

Replicate(hw) == AdvanceHighWatermark(hw) /\ UNCHANGED known

\* A replica truncates, and reads its log again; not where it knows no producer, and no marker that
\* may be cut off (ProducerStateManager.isEmpty): nothing is open there.
ProducersIn(records) == {records[i].producer : i \in DOMAIN records} \intersect Producers
ReadsAgain == known # {} \/ unreplicated # {}
Truncate(end) ==
  /\ leaderChanges < MaxLeaderChanges
  /\ highWatermark <= end /\ end < Len(log)
  /\ LET records == SubSeq(log, 1, end) IN
       /\ log' = records
       /\ abortIndex' = AbortIndexOf(records)
       /\ IF ReadsAgain
          THEN /\ ongoing' = OngoingOf(records)
               /\ unreplicated' = UnreplicatedOf(records, highWatermark)
               /\ known' = ProducersIn(records)
          ELSE /\ ongoing' = [p \in Producers |-> NoOffset]
               /\ unreplicated' = {}
               /\ known' = {}
  /\ leaderChanges' = leaderChanges + 1
  /\ UNCHANGED <<highWatermark, logStart>>
  /\ UNCHANGED consumer

ExpiryNext ==
  \/ ExpireProducers
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
===============================================================================
