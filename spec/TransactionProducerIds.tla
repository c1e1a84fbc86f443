------------------------ MODULE TransactionProducerIds ------------------------
(***************************************************************************)
(* What follows when the epochs of a producer id are used up (KIP-360,     *)
(* KIP-890). Version 2: whoever ends a transaction in the last epoch gets  *)
(* the next producer id with the answer, before the transaction is         *)
(* complete. Until then the coordinator has to remember it.                *)
(*                                                                         *)
(* Ids and epochs are one count here, in the order in which a producer is  *)
(* given them:                                                             *)
(*                                                                         *)
(*   here          | in Kafka                                              *)
(*   --------------+------------------------------------------------------ *)
(*   0..LastEpoch  | epochs of the first producer id, up to 32766          *)
(*   LastEpoch + 1 | its epoch 32767: of a decision and of its markers     *)
(*   LastEpoch + 2 | epoch 0 of the next producer id                       *)
(*                                                                         *)
(* Kafka: TransactionCoordinator.endTransaction, TransactionMetadata       *)
(* .prepareAbortOrCommit and prepareComplete, TransactionLog. Left out is  *)
(* what a partition does for two producer ids at once: MaxTransactions is  *)
(* 1. Models override three operators of Transactions by those below.      *)
(***************************************************************************)
EXTENDS Transactions

CONSTANT LastEpoch

EpochOfDecision == LastEpoch + 1
NextId == LastEpoch + 2

(***************************************************************************)
(* What the coordinator knows of the next producer id.                     *)
(***************************************************************************)
\* A decision in the last epoch has one, that of a fence too (KAFKA-20090).
HasNextId(c) == {TRUE}
\* Records have it, and the one before: whoever loads them goes on as the coordinator before.
\* (KAFKA-20310.)
IdsAreStored == TRUE
\* What was loaded is no request's.
IsLoaded(c) == coordinators[c].tenure > 1 /\ Now(c).request = NoTransaction
Knows(c) == IdsAreStored \/ ~IsLoaded(c)

\* TransactionMetadata.prepareComplete.
EpochsAfter(c) ==
  IF Now(c).state \in Prepares /\ Now(c).epoch = EpochOfDecision
  THEN {IF has /\ Knows(c) THEN NextId ELSE EpochOfDecision : has \in HasNextId(c)}
  ELSE {Now(c).epoch}

(***************************************************************************)
(* The steps that make a difference. An EndTxn that is sent again is known *)
(* by the producer id before this one.                                     *)
(***************************************************************************)
\* OnlyWrites.
WritesWithId(c, record) ==
  /\ \E epoch \in (IF record.state \in Completes THEN EpochsAfter(c) ELSE {record.epoch}) :
       Appends(c, [record EXCEPT !.epoch = epoch])
  /\ coordinators' = [coordinators EXCEPT ![c].pending = record.state]
  /\ UNCHANGED <<requests, clients, partitions, applications>>

EpochsOfEnd(epoch) == IF epoch = LastEpoch THEN {EpochOfDecision, NextId} ELSE {epoch + 1}
\* IsSameEnd.
IsSameEndOfId(i, record) ==
  /\ record.state \in {Prepare(clients[i].commits), Complete(clients[i].commits)}
  /\ record.epoch \in EpochsOfEnd(clients[i].epoch)
  /\ record.state \in Prepares => record.request = clients[i].txn

\* TakeEnd.
TakeEndWithId(i, c) ==
  /\ clients[i].state = "Ending"
  /\ AnswersUnwritten(c) /\ IsAnswered(i, c)
  /\ Now(c).epoch = NextId => Knows(c)
  /\ \E epoch \in EpochsAfter(c) :
       clients' = [clients EXCEPT ![i] = Client("Ready", epoch, NoTransaction, {}, {}, FALSE)]
  /\ requests' = requests \ Gone({EndTxn(clients[i].epoch, clients[i].commits, clients[i].txn)})
  /\ told' = told \union {[txn |-> clients[i].txn, commits |-> clients[i].commits,
                           batches |-> SentIn(i)]}
  /\ UNCHANGED <<coordination, partitions, begun, asked>>

(***************************************************************************)
(* What an application relies on.                                          *)
(***************************************************************************)
\* Where a coordinator is at rest it knows all ids and epochs that were given away: the producer's
\* next transaction is not refused.
GivenIdIsKept ==
  \A c \in Coordinators : Current(c) /\ Idle(c) =>
    \A i \in Clients : clients[i].epoch <= Now(c).epoch

\* An id that is at rest can end another transaction: what 32767 is open in has no end.
EpochIsLeft ==
  \A c \in Coordinators : Current(c) /\ Idle(c) /\ IsOver(Now(c).state) =>
    Now(c).epoch # EpochOfDecision
===============================================================================
