--------------------------- MODULE TransactionExpiry ---------------------------
(***************************************************************************)
(* A transactional id that nobody uses is forgotten: after                 *)
(* transactional.id.expiration.ms the coordinator appends a tombstone, and *)
(* once that is replicated, removes the id from memory. Who asks for the   *)
(* id next gets a producer id that nobody had. Time may be over whenever   *)
(* the id is at rest.                                                      *)
(*                                                                         *)
(*   step                     in Kafka                                     *)
(*   ------------------------+-------------------------------------------- *)
(*   ExpireId                 TransactionStateManager                      *)
(*                            .removeExpiredTransactionalIds, and          *)
(*                            TransactionMetadata.prepareDead              *)
(*   AcknowledgeAppend,       removeFromCacheCallback of                   *)
(*   FailAppend, CallBackLate writeTombstonesForExpiredTransactionalIds    *)
(*   HandleInitProducerId     TransactionCoordinator, of an id that is new *)
(*   RefuseAddOfExpired,      TransactionCoordinator                       *)
(*   RefuseEndOfExpired,      .handleAddPartitionsToTransaction,           *)
(*   RefuseBatchOfExpired     .endTransaction, .handleVerifyPartitions-    *)
(*                            InTransaction                                *)
(*                                                                         *)
(* Ids and epochs are one count here, in the order in which producers are  *)
(* given them. Each id has EpochsOfId numbers, which are more than it is   *)
(* given in a model:                                                       *)
(*                                                                         *)
(*   here                       | in Kafka                                 *)
(*   ---------------------------+----------------------------------------- *)
(*   0..(EpochsOfId - 1)        | epochs of the first producer id          *)
(*   n * EpochsOfId, ...        | of the producer id that is given after n *)
(*                              | tombstones, from its epoch 0 on          *)
(*                                                                         *)
(* A producer id whose first record is lost with its coordinator was told  *)
(* to nobody: the one that is given instead has the same numbers. Left out *)
(* is what a partition does for two producer ids at once: MaxTransactions  *)
(* is 1. Models override operators of Transactions by those below.         *)
(***************************************************************************)
EXTENDS Transactions

CONSTANTS EpochsOfId, MaxExpiries

(***************************************************************************)
(* The tombstone, which is also what a coordinator knows of an id that it  *)
(* does not know. "Dead" is pending until the tombstone is replicated.     *)
(***************************************************************************)
Tombstone == TxnRecord("Dead", NoEpoch, {}, NoTransaction, NoClient, NoTransaction)
Tombstones == {n \in DOMAIN transactionLog : transactionLog[n] = Tombstone}
IsAtEnd(state) == state = "Empty" \/ state \in Completes

\* States.
StatesAndDead == StatesOfId \union {"Dead"}
\* LegalMoves: only what is over is forgotten, and what comes after it begins anew.
MovesAndExpiry ==
  MovesOfId \union ({"Empty"} \union Completes) \X {"Dead"} \union {<<"Dead", "Empty">>}

(***************************************************************************)
(* The scan. Apart from each other are the tombstone and its call-back.    *)
(***************************************************************************)
MayExpire(c) == Idle(c) /\ IsAtEnd(Now(c).state)
ExpireId(c) ==
  /\ MayWrite(c) /\ MayExpire(c)
  /\ Cardinality(Tombstones) < MaxExpiries
  /\ Appends(c, Tombstone)
  /\ coordinators' = [coordinators EXCEPT ![c].pending = "Dead"]
  /\ UNCHANGED <<requests, clients, partitions, applications>>

\* Lengths: of the log, with the records of another id.
LengthsWithExpiry == 1..(6 * MaxTransactions + 2 * EpochsOfId + 2)

\* The partition has kept its leader in a new leader epoch, as after a reassignment, and the call-back
\* of the term before comes. The id that was loaded since is another one: nothing is done to it.
PendingAfterLate(c) == Pending(c)
LateCallBackReturns(c) == TRUE
CallBackLate(c, t) ==
  /\ MayWrite(c) /\ LateCallBackReturns(c)
  /\ \E call \in calls :
       /\ call.broker = c /\ call.tenure = t /\ ~OfThisTenure(c, call)
       /\ call.record = Tombstone /\ IsInLog(call) /\ call.at <= replicated
       /\ calls' = calls \ {call}
  /\ coordinators' = [coordinators EXCEPT ![c].pending = PendingAfterLate(c)]
  /\ UNCHANGED <<leader, tenure, transactionLog, replicated, requests, clients, partitions,
                 applications, appendFailures>>

(***************************************************************************)
(* InitProducerId of an id that is not known. It is made in memory, with a *)
(* producer id and no epoch; it stays there if its record fails.           *)
(***************************************************************************)
IdOf(epoch) == epoch \div EpochsOfId
FirstEpoch == Cardinality(Tombstones) * EpochsOfId

\* IsOver.
IsOverOrDead(state) == IsAtEnd(state) \/ state = "Dead"
\* HasEpochLeft, NextEpoch.
HasEpochOfIdLeft(c) == Now(c).epoch = NoEpoch \/ Now(c).epoch % EpochsOfId < EpochsOfId - 1
NextEpochOfId(c) == IF Now(c).epoch = NoEpoch THEN FirstEpoch ELSE Now(c).epoch + 1
\* OnlyWrites.
WritesAndMakes(c, record) ==
  /\ Appends(c, record)
  /\ coordinators' = [coordinators EXCEPT ![c].pending = record.state,
                                          ![c].now = IF @ = Tombstone THEN Unknown ELSE @]
  /\ UNCHANGED <<requests, clients, partitions, applications>>

(***************************************************************************)
(* Requests of whoever had the id before.                                  *)
(***************************************************************************)
IsForgotten(c, epoch) ==
  /\ Current(c) /\ Idle(c)
  /\ Now(c).epoch = NoEpoch \/ IdOf(Now(c).epoch) # IdOf(epoch)
ErrorOfForgotten(error) == error = "INVALID_PRODUCER_ID_MAPPING"

RefuseAddOfExpired(c, i, p, error) ==
  /\ ~Version2 /\ InTransaction(i) /\ p \notin clients[i].added
  /\ IsForgotten(c, clients[i].epoch) /\ ErrorOfForgotten(error)
  /\ UNCHANGED vars

RefuseEndOfExpired(c, t, commits, error) ==
  /\ \E m \in requests :
       /\ m.type = "EndTxn" /\ m.txn = t /\ m.commits = commits
       /\ IsForgotten(c, m.epoch)
  /\ ErrorOfForgotten(error)
  /\ UNCHANGED vars

\* The partition's leader asks; it keeps its entry, and the batch is answered.
RefuseBatchOfExpired(c, p, error) ==
  /\ ErrorOfForgotten(error)
  /\ \E v \in verifying :
       /\ v.batch.partition = p /\ ~v.isVerified /\ IsForgotten(c, v.batch.epoch)
       /\ verifying' = verifying \ {v}
  /\ UNCHANGED <<coordination, requests, clients, applications>>
  /\ UNCHANGED <<log, highWatermark, entry, leadership>>

ErrorsOfExpired == {"INVALID_PRODUCER_ID_MAPPING"}
ExpiryNext ==
  \/ Next
  \/ \E c \in Coordinators : ExpireId(c)
  \/ \E c \in Coordinators, t \in Tenures : CallBackLate(c, t)
  \/ \E c \in Coordinators, i \in Clients, p \in Partitions, error \in ErrorsOfExpired :
       RefuseAddOfExpired(c, i, p, error)
  \/ \E c \in Coordinators, t \in Transactions, commits \in BOOLEAN, error \in ErrorsOfExpired :
       RefuseEndOfExpired(c, t, commits, error)
  \/ \E c \in Coordinators, p \in Partitions, error \in ErrorsOfExpired :
       RefuseBatchOfExpired(c, p, error)

(***************************************************************************)
(* What an application relies on.                                          *)
(***************************************************************************)
\* Expiry takes no transaction that is open or undecided: what is open in a partition belongs to the
\* producer id that the coordinator's log has, so a marker can end it.
OpenHasItsId ==
  LET last == LastRecord(transactionLog)
  IN  \A p \in Partitions : \A i \in Open(p) :
        last # Tombstone /\ IdOf(log[p][i].epoch) = IdOf(last.epoch)

\* Nobody goes on with an id that was forgotten: the next producer id is new and begins with epoch 0,
\* and epochs of one id rise one by one.
ForgottenIdEnds ==
  \A i \in 2..Len(transactionLog) :
    LET before == transactionLog[i - 1]
        epoch == transactionLog[i].epoch
    IN  \/ transactionLog[i] = Tombstone
        \/ before # Tombstone /\ epoch - before.epoch \in {0, 1} /\ IdOf(epoch) = IdOf(before.epoch)
        \/ before = Tombstone
             /\ epoch = EpochsOfId * Cardinality({n \in Tombstones : n < i})
===============================================================================
