------------------------- MODULE TransactionManager -------------------------
(***************************************************************************)
(* A transactional producer: what the application calls, what is sent for  *)
(* it, and what the producer makes of the errors that are answered.        *)
(*                                                                         *)
(* Source: org.apache.kafka.clients.producer, as on branch 4.4 in August   *)
(* 2026: KafkaProducer, internals.Sender, internals.TransactionManager.    *)
(*                                                                         *)
(* variable       | field of TransactionManager                            *)
(* ---------------+------------------------------------------------------- *)
(* state          | currentState                                           *)
(* lastError      | lastError                                              *)
(* epoch          | producerIdAndEpoch: how many the coordinator has given, *)
(*                | less one                                               *)
(* started        | transactionStarted                                     *)
(* bump           | clientSideEpochBumpRequired                            *)
(* added          | the partition is in newPartitionsInTransaction ("new"), *)
(*                | pendingPartitionsInTransaction ("pending"), or         *)
(*                | partitionsInTransaction ("yes")                        *)
(* requests       | pendingRequests                                        *)
(* flight         | inFlightRequestCorrelationId: the request              *)
(* batch          | RecordAccumulator: a batch of records that waits or is *)
(*                | sent                                                   *)
(* call           | pendingTransition: what the application has called, if *)
(*                | it waits for it, and its TransactionalRequestResult    *)
(* thrown         | the exception that the application got last            *)
(*                                                                         *)
(* Errors are named by their codes; two exceptions have none: "KafkaException", *)
(* and "IllegalStateException" of a call that is not legal.                *)
(* lost and owner are nobody's fields: a record of the transaction has     *)
(* failed; whose the transactional id is at the coordinator.               *)
(*                                                                         *)
(* One partition, one batch at a time. Offsets are sent once the records   *)
(* are in the transaction and answered. A coordinator is found at once.    *)
(* Not here: two-phase commit (KIP-939), authorisation, an upgrade of      *)
(* transaction.version, errors that brokers from 3.8 on do not answer.     *)
(***************************************************************************)
EXTENDS Integers, FiniteSets

CONSTANTS
  Version2,    \* transaction.version 2 (KIP-890)
  Answers,     \* of each request: the errors that it may be answered with
  BatchErrors, \* with which a batch fails, once its retries are exhausted
  Delivery,    \* a batch may expire before it is sent (delivery.timeout.ms)
  SendErrors,  \* with which a call of send may fail, before there is a batch
  Offsets,     \* the application sends offsets
  GivesUp,     \* the application's calls may time out (max.block.ms)
  Rivals,      \* another producer takes the transactional id, and both are idle until it expires
  MaxEpoch

VARIABLES state, lastError, epoch, started, bump, added, requests, flight, batch, call, thrown,
          lost, owner

txnVars == <<lastError, epoch, started, bump, added, requests, flight>>
vars    == <<state, txnVars, batch, call, thrown, lost, owner>>

States ==
  {"UNINITIALIZED", "INITIALIZING", "READY", "IN_TRANSACTION", "COMMITTING_TRANSACTION",
   "ABORTING_TRANSACTION", "ABORTABLE_ERROR", "FATAL_ERROR"}

\* BumpEpoch is InitProducerId with the producer's id and epoch, once a transaction has ended.
Requests ==
  {"InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn", "BumpEpoch"}
Priority ==
  [r \in Requests |->
     CASE r = "InitProducerId" -> 1 [] r = "EndTxn" -> 3 [] r = "BumpEpoch" -> 4 [] OTHER -> 2]

\* RetriableException.
Retriable ==
  {"CONCURRENT_TRANSACTIONS", "COORDINATOR_LOAD_IN_PROGRESS", "NOT_ENOUGH_REPLICAS", "REQUEST_TIMED_OUT"}
Fenced == {"INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"}

NoCall     == [does |-> "none", waits |-> FALSE, result |-> "none"]
Called(op) == [does |-> op, waits |-> TRUE, result |-> "none"]

IsCompleting == state \in {"COMMITTING_TRANSACTION", "ABORTING_TRANSACTION"}
HasError     == state \in {"ABORTABLE_ERROR", "FATAL_ERROR"}

Init ==
  /\ state = "UNINITIALIZED" /\ lastError = "NONE" /\ epoch = -1
  /\ started = FALSE /\ bump = FALSE /\ added = "no"
  /\ requests = {} /\ flight = "none" /\ batch = "none"
  /\ call = NoCall /\ thrown = "NONE"
  /\ lost = FALSE /\ owner = "us"

(***************************************************************************)
(* What is thrown, and results.                                            *)
(***************************************************************************)
\* maybeFailWithError.
ThrownInError == IF lastError \in Fenced THEN lastError ELSE "KafkaException"

\* A call that waits returns with its result; one that was given up keeps it.
Settle(c, result) ==
  IF c.waits
  THEN call' = NoCall /\ thrown' = result
  ELSE call' = [c EXCEPT !.result = result] /\ UNCHANGED thrown

Unsettled == UNCHANGED <<call, thrown>>

\* The call whose result a request's is. An abort with BumpEpoch to come ends with that one.
EndsCall(r) ==
  CASE r \in {"InitProducerId", "BumpEpoch"} -> call.does \in {"init", "abort"}
    [] r = "EndTxn"                          -> call.does \in {"commit", "abort"} /\ "BumpEpoch" \notin requests
    [] r = "AddPartitionsToTxn"              -> FALSE
    [] OTHER                                 -> call.does = "offsets"

SettleOf(r, result) == IF EndsCall(r) THEN Settle(call, result) ELSE Unsettled

\* Whoever may retry would do so in the same transaction, and write twice (KAFKA-19176).
ErrorAfterRetries(error) ==
  IF error \in Retriable \union {"INVALID_TXN_STATE"} THEN "TRANSACTION_ABORTABLE" ELSE error

(***************************************************************************)
(* The application: KafkaProducer, TransactionManager.                     *)
(***************************************************************************)
IsFree == call.does = "none"

\* handleCachedTransactionRequestResult: the same call again waits for the same result (KAFKA-13412).
IsRepeated(op)      == call.does = op /\ ~call.waits
KeepsResult         == TRUE
Repeat(op) ==
  /\ IF ~KeepsResult
     THEN call' = NoCall /\ thrown' = "IllegalStateException"
     ELSE IF call.result = "none"
     THEN call' = [call EXCEPT !.waits = TRUE] /\ thrown' = "NONE"
     ELSE call' = NoCall /\ thrown' = call.result
  /\ UNCHANGED <<state, txnVars, batch, lost, owner>>

Throw(error) == thrown' = error /\ UNCHANGED <<state, txnVars, batch, call, lost, owner>>

\* initializeTransactions.
InitTransactions ==
  \/ /\ IsFree /\ state = "UNINITIALIZED"
     /\ state' = "INITIALIZING" /\ requests' = {"InitProducerId"}
     /\ call' = Called("init") /\ thrown' = "NONE"
     /\ UNCHANGED <<lastError, epoch, started, bump, added, flight, batch, lost, owner>>
  \/ IsRepeated("init") /\ Repeat("init")

\* beginTransaction.
BeginTransaction ==
  /\ IsFree
  /\ \/ /\ state = "READY" /\ epoch < MaxEpoch
        /\ state' = "IN_TRANSACTION" /\ lastError' = "NONE" /\ thrown' = "NONE" /\ lost' = FALSE
        /\ UNCHANGED <<epoch, started, bump, added, requests, flight, batch, call, owner>>
     \/ HasError /\ Throw(ThrownInError)

\* KafkaProducer.doSend, maybeAddPartition. Version 2 has no AddPartitionsToTxn of clients.
Send ==
  /\ IsFree /\ batch = "none"
  /\ \/ /\ state = "IN_TRANSACTION"
        /\ batch' = "waits" /\ thrown' = "NONE"
        /\ added' = IF Version2 THEN "yes" ELSE IF added = "no" THEN "new" ELSE added
        /\ started' = (started \/ Version2)
        /\ UNCHANGED <<state, lastError, epoch, bump, requests, flight, call, lost, owner>>
     \/ HasError /\ Throw(ThrownInError)

\* KafkaProducer.doSend fails, as there is no metadata for max.block.ms, or a record is too large;
\* maybeTransitionToErrorState. The record's future has the error as it is.
FailSend(error) ==
  /\ IsFree /\ batch = "none" /\ state = "IN_TRANSACTION" /\ error \in SendErrors
  /\ state' = "ABORTABLE_ERROR" /\ lastError' = ErrorAfterRetries(error)
  /\ bump' = (bump \/ ~Version2)
  /\ lost' = TRUE /\ thrown' = "NONE"
  /\ UNCHANGED <<epoch, started, added, requests, flight, batch, call, owner>>

\* sendOffsetsToTransaction.
SendOffsets ==
  /\ Offsets /\ IsFree /\ state = "IN_TRANSACTION"
  /\ batch = "none" /\ added \in {"no", "yes"} /\ requests = {} /\ flight = "none"
  /\ requests' = {IF Version2 THEN "TxnOffsetCommit" ELSE "AddOffsetsToTxn"}
  /\ started' = (started \/ Version2)
  /\ call' = Called("offsets") /\ thrown' = "NONE"
  /\ UNCHANGED <<state, lastError, epoch, bump, added, flight, batch, lost, owner>>

\* beginCompletingTransaction.
BeginCompleting(to, op) ==
  /\ state' = to /\ lastError' = "NONE"
  /\ requests' =
       requests \union {"EndTxn"}
         \union (IF bump THEN {"BumpEpoch"} ELSE {})
         \union (IF added = "new" /\ op = "commit" THEN {"AddPartitionsToTxn"} ELSE {})
  /\ added' = IF added = "new" THEN (IF op = "commit" THEN "pending" ELSE "no") ELSE added
  /\ call' = Called(op) /\ thrown' = "NONE"
  /\ UNCHANGED <<epoch, started, bump, flight, batch, lost, owner>>

\* beginCommit.
CommitTransaction ==
  \/ /\ IsFree
     /\ \/ state = "IN_TRANSACTION" /\ BeginCompleting("COMMITTING_TRANSACTION", "commit")
        \/ HasError /\ Throw(ThrownInError)
  \/ IsRepeated("commit") /\ Repeat("commit")

\* beginAbort. Only where an abort has failed and is not fatal (KAFKA-19250) is there nothing to abort.
AbortTransaction ==
  \/ /\ IsFree
     /\ \/ /\ state \in {"IN_TRANSACTION", "ABORTABLE_ERROR"}
           /\ BeginCompleting("ABORTING_TRANSACTION", "abort")
        \/ state = "FATAL_ERROR" /\ Throw(ThrownInError)
        \/ state = "ABORTING_TRANSACTION" /\ Throw("IllegalStateException")
  \/ IsRepeated("abort") /\ Repeat("abort")

\* TransactionalRequestResult.await: max.block.ms is over; the request goes on.
StopWaiting ==
  /\ GivesUp /\ call.waits /\ call.does # "offsets"
  /\ call' = [call EXCEPT !.waits = FALSE]
  /\ UNCHANGED <<state, txnVars, batch, thrown, lost, owner>>

(***************************************************************************)
(* The sender: which request is next.                                      *)
(***************************************************************************)
\* resetTransactionState.
Reset ==
  /\ state' = IF bump THEN "INITIALIZING" ELSE "READY"
  /\ lastError' = "NONE" /\ bump' = FALSE /\ started' = FALSE /\ added' = "no"

First(queue) == CHOOSE r \in queue : \A o \in queue : Priority[r] <= Priority[o]

\* What of the accumulator was never sent is dropped: abortUndrainedBatches.
IsDropped == batch = "waits" /\ state \in {"ABORTABLE_ERROR", "ABORTING_TRANSACTION"}

\* EndTxn waits until every batch is answered.
IsHeld(r, isComplete) == r = "EndTxn" /\ ~isComplete

\* maybeTerminateRequestWithError: nothing of a transaction that failed is sent.
IsTerminated == HasError

\* EndTxn of a transaction that the coordinator has not heard of is not sent. What comes next is.
SkipEnd(queue) ==
  /\ Reset
  /\ flight' = IF queue = {} THEN "none" ELSE First(queue)
  /\ requests' = queue \ {flight'}
  /\ IF queue = {} THEN Settle(call, "NONE") ELSE Unsettled

TakeRequest(r, queue) ==
  CASE IsTerminated ->
         /\ requests' = queue
         /\ SettleOf(r, lastError)
         /\ UNCHANGED <<state, lastError, started, bump, flight>>
    [] r = "EndTxn" /\ ~started -> SkipEnd(queue)
    [] OTHER ->
         /\ flight' = r /\ requests' = queue
         /\ Unsettled /\ UNCHANGED <<state, lastError, started, bump>>

\* Sender.maybeSendAndPollTransactionalRequest, nextRequest.
NextRequest ==
  LET queue == requests \union (IF added = "new" THEN {"AddPartitionsToTxn"} ELSE {})
      left  == IF IsDropped THEN "none" ELSE batch
      first == First(queue)
      isHeld == queue = {} \/ IsHeld(first, left = "none")
  IN  /\ flight = "none" /\ state # "FATAL_ERROR"
      /\ ~isHeld \/ IsDropped
      /\ batch' = left /\ lost' = (lost \/ IsDropped)
      /\ IF isHeld
         THEN /\ requests' = queue /\ Unsettled
              /\ UNCHANGED <<state, lastError, started, bump, flight>>
         ELSE TakeRequest(first, queue \ {first})
      /\ added' = IF ~isHeld /\ first = "EndTxn" /\ ~IsTerminated /\ ~started THEN "no"
                  ELSE IF added = "new" THEN "pending" ELSE added
      /\ UNCHANGED <<epoch, owner>>

(***************************************************************************)
(* The sender: what is made of an answer.                                  *)
(***************************************************************************)
\* transitionToFatalError: every call ends with it, and batches are dropped (maybeAbortBatches).
Fatal(error) ==
  /\ state' = "FATAL_ERROR" /\ lastError' = error
  /\ batch' = "none" /\ lost' = (lost \/ batch # "none")
  /\ UNCHANGED <<epoch, bump, started>>

FatalAnswer(error) ==
  /\ Fatal(error)
  /\ IF IsFree \/ call.result # "none" THEN Unsettled ELSE Settle(call, error)
  /\ UNCHANGED <<added, requests>>

\* transitionToAbortableError: not while the transaction is being aborted.
Abortable(error) ==
  IF state = "ABORTING_TRANSACTION" THEN UNCHANGED <<state, lastError>>
  ELSE state' = "ABORTABLE_ERROR" /\ lastError' = error

AbortableAnswer(error, bumps) ==
  /\ Abortable(error) /\ SettleOf(flight, error)
  /\ bump' = (bump \/ bumps)
  /\ UNCHANGED <<epoch, started, added, requests, batch, lost>>

\* The id is another's, or nobody's: to go on under a new one would be to come back (KAFKA-18019).
IsIdGoneFatal == TRUE

\* An abort cannot be aborted (KAFKA-19250).
IsAbortFailedFatal == TRUE

\* From a fresh identity on, or from the next transaction.
Done ==
  /\ flight' = "none"
  /\ CASE flight \in {"InitProducerId", "BumpEpoch"} ->
            /\ epoch' = epoch + 1 /\ state' = "READY" /\ lastError' = "NONE"
            /\ UNCHANGED <<started, bump, added, requests>>
       [] flight = "EndTxn" ->
            /\ Reset /\ epoch' = IF Version2 THEN epoch + 1 ELSE epoch
            /\ UNCHANGED requests
       [] flight = "AddPartitionsToTxn" ->
            /\ added' = "yes" /\ started' = TRUE
            /\ UNCHANGED <<state, lastError, epoch, bump, requests>>
       [] flight = "AddOffsetsToTxn" ->
            /\ started' = TRUE /\ requests' = requests \union {"TxnOffsetCommit"}
            /\ UNCHANGED <<state, lastError, epoch, bump, added>>
       [] OTHER -> UNCHANGED <<state, lastError, epoch, started, bump, added, requests>>
  /\ IF flight = "AddOffsetsToTxn" THEN Unsettled ELSE SettleOf(flight, "NONE")
  /\ UNCHANGED <<batch, lost>>

\* reenqueue: there is no end to the retries of these requests.
Again ==
  /\ requests' = requests \union {flight}
  /\ Unsettled /\ UNCHANGED <<state, lastError, epoch, started, bump, added, batch, lost>>

\* handleResponse of the handlers; which errors have their own exception.
Failed(error) ==
  CASE error \in Retriable -> Again
    [] error \in Fenced -> FatalAnswer("PRODUCER_FENCED")
    [] error = "INVALID_PRODUCER_ID_MAPPING" /\ flight \in {"AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn"} ->
         IF IsIdGoneFatal THEN FatalAnswer(error) ELSE AbortableAnswer(error, ~Version2)
    [] error = "INVALID_TXN_STATE" /\ flight \in {"AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn"} ->
         FatalAnswer(error)
    [] error = "TRANSACTION_ABORTABLE" ->
         IF flight = "EndTxn" /\ state = "ABORTING_TRANSACTION" /\ IsAbortFailedFatal
         THEN FatalAnswer("KafkaException")
         ELSE AbortableAnswer(error, FALSE)
    [] OTHER -> FatalAnswer("KafkaException")

\* What the coordinator says to a producer whose id it is not. One that has expired is had anew
\* (TransactionCoordinator.handleInitProducerId).
AnswersOf(r) ==
  CASE owner = "us"                                            -> Answers[r]
    [] owner = "another"                                       -> {"PRODUCER_FENCED"}
    [] owner = "nobody" /\ r \in {"InitProducerId", "BumpEpoch"} -> {"NONE"}
    [] OTHER                                                   -> {"INVALID_PRODUCER_ID_MAPPING"}

Answer(error) ==
  /\ flight # "none" /\ error \in AnswersOf(flight)
  /\ IF error = "NONE" THEN Done ELSE flight' = "none" /\ Failed(error)
  /\ owner' = IF error = "NONE" /\ flight \in {"InitProducerId", "BumpEpoch"} THEN "us" ELSE owner

(***************************************************************************)
(* The sender: batches.                                                    *)
(***************************************************************************)
\* Sender.sendProducerData, once no request is left that goes first; isSendToPartitionAllowed.
IsTurnOfData ==
  /\ batch = "waits" /\ added = "yes" /\ state \in {"IN_TRANSACTION", "COMMITTING_TRANSACTION"}
  /\ flight = "none" /\ requests \subseteq {"EndTxn", "BumpEpoch"}

SendBatch ==
  /\ IsTurnOfData
  /\ batch' = "sent"
  /\ UNCHANGED <<state, txnVars, call, thrown, lost, owner>>

\* handleCompletedBatch.
CompleteBatch ==
  /\ batch = "sent" /\ owner = "us"
  /\ batch' = "none"
  /\ UNCHANGED <<state, txnVars, call, thrown, lost, owner>>

\* What the leader answers, or the coordinator that it asks. Batches expire where they would be sent.
BatchErrorsNow ==
  CASE batch = "waits"    -> IF Delivery /\ IsTurnOfData THEN {"REQUEST_TIMED_OUT"} ELSE {}
    [] owner = "us"       -> BatchErrors
    [] owner = "another"  -> {"INVALID_PRODUCER_EPOCH"}
    [] OTHER              -> {"INVALID_PRODUCER_ID_MAPPING"}

\* Sender.failBatch, handleFailedBatch, maybeTransitionToErrorState. Version 2 bumps at every end.
FailBatch(error) ==
  /\ batch # "none" /\ error \in BatchErrorsNow
  /\ IF error = "PRODUCER_FENCED" \/ (error = "INVALID_PRODUCER_ID_MAPPING" /\ IsIdGoneFatal)
     THEN FatalAnswer(error)
     ELSE /\ Abortable(ErrorAfterRetries(error))
          /\ bump' = (bump \/ (~Version2 /\ ~IsCompleting))
          /\ batch' = "none" /\ lost' = TRUE
          /\ UNCHANGED <<epoch, started, added, requests, call, thrown>>
  /\ UNCHANGED <<flight, owner>>

(***************************************************************************)
(* The coordinator.                                                        *)
(***************************************************************************)
\* Another producer with the same transactional.id has called initTransactions.
Fence ==
  /\ Rivals /\ owner = "us" /\ epoch >= 0
  /\ owner' = "another"
  /\ UNCHANGED <<state, txnVars, batch, call, thrown, lost>>

\* transactional.id.expiration.ms: neither has written for so long.
ExpireId ==
  /\ owner = "another"
  /\ owner' = "nobody"
  /\ UNCHANGED <<state, txnVars, batch, call, thrown, lost>>

AllErrors == UNION {Answers[r] : r \in Requests} \union BatchErrors \union SendErrors
               \union {"PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", "INVALID_PRODUCER_ID_MAPPING", "REQUEST_TIMED_OUT"}

Next ==
  \/ InitTransactions \/ BeginTransaction \/ Send \/ SendOffsets
  \/ CommitTransaction \/ AbortTransaction \/ StopWaiting
  \/ NextRequest \/ SendBatch \/ CompleteBatch
  \/ \E error \in AllErrors : Answer(error) \/ FailBatch(error) \/ FailSend(error)
  \/ Fence \/ ExpireId

(***************************************************************************)
(* What holds.                                                             *)
(***************************************************************************)
Outcomes == AllErrors \union {"NONE", "TRANSACTION_ABORTABLE", "KafkaException", "IllegalStateException"}

TypeOK ==
  /\ state \in States /\ lastError \in Outcomes /\ thrown \in Outcomes
  /\ epoch \in -1..MaxEpoch + 1 /\ started \in BOOLEAN /\ bump \in BOOLEAN
  /\ added \in {"no", "new", "pending", "yes"}
  /\ requests \subseteq Requests /\ flight \in Requests \union {"none"}
  /\ batch \in {"none", "waits", "sent"}
  /\ call.does \in {"none", "init", "offsets", "commit", "abort"} /\ call.waits \in BOOLEAN
  /\ call.result \in Outcomes \union {"none"}
  /\ lost \in BOOLEAN /\ owner \in {"us", "another", "nobody"}

\* What an exception lets an application retry is never a part of a transaction: it would be written
\* twice (KAFKA-19176).
NothingToRetry == thrown \notin Retriable

\* A transaction that is being ended ends: its request is on its way (KAFKA-19250).
CompletingEnds == IsCompleting => "EndTxn" \in requests \union {flight}

\* An application that repeats a call which timed out, or ends what failed, is never told that it may not.
CallsAreLegal == thrown # "IllegalStateException"

\* Of a transaction that commits no record is missing.
CommitsAll == (flight = "EndTxn" /\ call.does = "commit") => ~lost

\* The end of a transaction never overtakes its records.
EndsLast == flight = "EndTxn" => batch # "sent"

\* The leader is sent no record of a partition that the coordinator does not know.
SentIfAdded == batch = "sent" => added = "yes"

\* A fatal error is the last word: nothing is sent any more.
FatalIsFinal ==
  [][state = "FATAL_ERROR" =>
       state' = "FATAL_ERROR" /\ flight' = flight /\ batch' # "sent" /\ epoch' = epoch]_vars

\* A producer that another one has replaced does not come back by itself: both would write what they
\* read (KAFKA-18019).
FencedStaysOut == [][owner # "us" => owner' # "us"]_vars

\* Situations.
SomeCallIsGivenUp == call.does # "none" /\ ~call.waits
SomeErrorIsAbortable == state = "ABORTABLE_ERROR"
SomeErrorIsFatal  == state = "FATAL_ERROR"
SomeIdIsGone      == owner = "nobody"
SomeEpochIsBumped == flight = "BumpEpoch"
=============================================================================
