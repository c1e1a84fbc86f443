--------------------------- MODULE TransactionErrors ---------------------------
(***************************************************************************)
(* What brokers answer to requests that they refuse. In Transactions.tla   *)
(* no step takes a request that must have no effect; here its refusal is a *)
(* step that names the error and changes no log.                           *)
(*                                                                         *)
(* The error decides what the producer does. After INVALID_PRODUCER_EPOCH  *)
(* it may abort and go on; after CONCURRENT_TRANSACTIONS it sends the      *)
(* request again; PRODUCER_FENCED and INVALID_TXN_STATE are its end.       *)
(*                                                                         *)
(*   step                   in Kafka                                       *)
(*   ----------------------+---------------------------------------------- *)
(*   RefuseVerification     UnifiedLog.maybeStartTransactionVerification   *)
(*   RefuseBatch            UnifiedLog.analyzeAndValidateProducerState,    *)
(*                          ProducerAppendInfo.maybeValidateDataBatch      *)
(*   DeliverOutdatedMarker  ProducerAppendInfo.appendEndTxnMarker          *)
(*   RefuseAddPartition     TransactionCoordinator                         *)
(*                          .handleAddPartitionsToTransaction              *)
(***************************************************************************)
EXTENDS Transactions

\* A batch of version 2 that arrives before one that was sent earlier. It is verified as any other.
HasOvertaken(p, m) ==
  /\ Version2 /\ p \notin OffsetsPartitions
  /\ EpochIsCurrent(p, m) /\ ~InSequence(p, m) /\ CopiesIn(p, DataRecord(m)) = {}
StartVerificationOfOvertaking(p, t, s) ==
  /\ \E m \in BatchesFor(p, t, s) :
       /\ HasLeader(p) /\ NeedsVerification(p, m) /\ HasOvertaken(p, m)
       /\ BeginsVerification(p, m)
  /\ UNCHANGED <<coordination, requests, clients, applications>>

RefuseVerification(p, t, s, error) ==
  /\ error = "INVALID_PRODUCER_EPOCH"
  /\ \E m \in BatchesFor(p, t, s) :
       /\ HasLeader(p) /\ NeedsVerification(p, m)
       /\ ~EpochIsCurrent(p, m) /\ ~MayBeVerified(p, m)
  /\ UNCHANGED vars

\* The epoch counts before the guard (KAFKA-19690): a transaction that timed out while its batch was
\* on the way has raised the epoch and cleared the guard.
ErrorOfOldEpoch(p, m) == "INVALID_PRODUCER_EPOCH"
ErrorOfBatch(p, m) ==
  IF ~EpochIsCurrent(p, m) THEN ErrorOfOldEpoch(p, m)
  ELSE IF NeedsVerification(p, m) /\ ~HasGuard(p, m) THEN "INVALID_TXN_STATE"
  ELSE "OUT_OF_ORDER_SEQUENCE_NUMBER"

\* The request is over; what its verification has left in the entry stays.
RefuseBatch(p, t, s, error) ==
  /\ \E m \in BatchesFor(p, t, s) :
       /\ HasLeader(p) /\ (~EpochIsCurrent(p, m) \/ HasOvertaken(p, m))
       /\ error = ErrorOfBatch(p, m)
       /\ verifying' = {v \in verifying : v.batch # m}
  /\ UNCHANGED <<coordination, requests, clients, applications>>
  /\ UNCHANGED <<log, highWatermark, entry, leadership>>

\* A marker that must not end what is open now. The coordinator takes the error for an answer.
IsOutdated(p, m) ==
  \/ m.epoch < StoredEpoch(p) \/ ~CoordinatorEpochIsValid(p, m)
  \/ Version2 /\ m.epoch = StoredEpoch(p) /\ Open(p) # {}
DeliverOutdatedMarker(p, t, coordinatorEpoch) ==
  /\ \E m \in requests :
       /\ m.type = "Marker" /\ m.partition = p /\ m.txn = t
       /\ m.coordinatorEpoch = coordinatorEpoch
       /\ HasLeader(p) /\ IsOutdated(p, m)
       /\ IF IsValid(p, m) THEN WithAppended(p, MarkerRecord(m)) /\ Clears(p)
          ELSE UNCHANGED <<log, highWatermark, entry, verifying>>
  /\ UNCHANGED <<coordination, requests, clients, applications, leadership>>

\* While a record is on its way nobody can tell whether the epoch is old (KAFKA-18660).
LooksAtPendingFirst == TRUE
ErrorOfAdd(c, epoch) ==
  LET isOld == Now(c).epoch # epoch
  IN  IF ~Idle(c) /\ (LooksAtPendingFirst \/ ~isOld) THEN "CONCURRENT_TRANSACTIONS"
      ELSE IF isOld THEN "PRODUCER_FENCED" ELSE "NONE"
RefuseAddPartition(c, i, p, error) ==
  /\ ~Version2 /\ InTransaction(i) /\ p \notin clients[i].added
  /\ MayWrite(c) /\ error = ErrorOfAdd(c, clients[i].epoch) /\ error # "NONE"
  /\ UNCHANGED vars

Errors ==
  {"INVALID_PRODUCER_EPOCH", "INVALID_TXN_STATE", "OUT_OF_ORDER_SEQUENCE_NUMBER",
   "CONCURRENT_TRANSACTIONS", "PRODUCER_FENCED"}

ErrorsNext ==
  \/ \E p \in Partitions, t \in Transactions, e \in Tenures : DeliverOutdatedMarker(p, t, e)
  \/ Next
  \/ \E p \in Partitions, t \in Transactions, s \in Sequences : StartVerificationOfOvertaking(p, t, s)
  \/ \E p \in Partitions, t \in Transactions, s \in Sequences, error \in Errors :
       RefuseVerification(p, t, s, error)
  \/ \E p \in Partitions, t \in Transactions, s \in Sequences, error \in Errors :
       RefuseBatch(p, t, s, error)
  \/ \E c \in Coordinators, i \in Clients, p \in Partitions, error \in Errors :
       RefuseAddPartition(c, i, p, error)

\* What is in a partition of one epoch begins with the first batch and has no hole (S15): a batch
\* that was lost with its leader is missed.
NoneIsMissing ==
  \A p \in Partitions \ OffsetsPartitions : \A i \in DOMAIN log[p] :
    log[p][i].kind = "data" =>
      \A s \in 0..(log[p][i].sequence - 1) :
        \E j \in 1..i : log[p][j].kind = "data" /\ log[p][j].epoch = log[p][i].epoch
                          /\ log[p][j].sequence = s
===============================================================================
