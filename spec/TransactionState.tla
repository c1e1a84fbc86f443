--------------------------- MODULE TransactionState ---------------------------
(***************************************************************************)
(* The transactions of one transactional id: variables, messages, logs.    *)
(*                                                                         *)
(* The id has one producer id for ever (no exhaustion of epochs); its      *)
(* instances call initTransactions once, and without an expected epoch.    *)
(*                                                                         *)
(* A transaction is identified by a number that exists in the              *)
(* specification only (`txn`, a ghost): no guard reads it, unless to find  *)
(* the request that an answer belongs to.                                  *)
(***************************************************************************)
EXTENDS ReadCommitted

CONSTANTS
  Clients,            \* instances of the producer; "a" is ready at the start
  Partitions,
  OffsetsPartitions,  \* those of __consumer_offsets: what is written there has no sequence
  Coordinators,       \* brokers that may lead the id's partition of __transaction_state
  Version2,           \* EndTxn v5, Produce v12: each end of a transaction raises the epoch
  Verification,       \* the leader of a partition asks the coordinator (KIP-890)
  StrictMarkers,      \* markers of version 2 need an epoch of their own (KIP-1228)
  Late,               \* types of requests that arrive late and twice: EndTxn, Produce, Marker
  MaxEpoch, MaxTransactions, MaxBatches,
  MaxTenures,         \* terms of coordinators, the first included
  MaxLeaderChanges,   \* of partitions; 0: what is appended is replicated at once
  MaxOutages,         \* how often a partition is without a leader for a while
  TimeOuts,           \* transaction.timeout.ms may be over
  MaxAppendFailures,  \* appends to __transaction_state that fail, though the leader has the record
  LoadIsReplicated    \* a coordinator waits until the log that it loads is replicated

(***************************************************************************)
(* variable         | field                                                *)
(* -----------------+----------------------------------------------------- *)
(* leader, tenure   | who leads the partition of __transaction_state, and  *)
(*                  | its leader epoch, the coordinator epoch              *)
(* transactionLog   | the records of the id: TransactionLogValue           *)
(* replicated       | how many of them are below the high watermark        *)
(* coordinators[c]  | TransactionMetadata, and the coordinator epoch       *)
(* calls            | appends whose call-back is to come                   *)
(* requests         | what was sent and may still arrive                   *)
(* clients[i]       | TransactionManager                                   *)
(* log[p]           | UnifiedLog: records of the id; what a partition has  *)
(*                  | of the producer (epoch, coordinator epoch, open      *)
(*                  | transaction) is a function of it                     *)
(* highWatermark[p] | UnifiedLog.highWatermark                             *)
(* entry[p]         | VerificationStateEntry: its epoch, NoEpoch if none   *)
(* verifying        | batches that were given the guard of the entry       *)
(* begun            | ghost: how many transactions were begun              *)
(* asked            | ghost: which ends the application asked for          *)
(* told             | ghost: which ends it was told, with the batches      *)
(* leaderless       | partitions that have no leader                       *)
(* leaderChanges    | ghost: how many there were, outages too              *)
(* appendFailures   | ghost: how many there were                           *)
(***************************************************************************)
VARIABLES leader, tenure, transactionLog, replicated, coordinators, calls, requests, clients,
          log, highWatermark, entry, verifying, leaderless, begun, asked, told, leaderChanges,
          appendFailures

coordination == <<leader, tenure, transactionLog, replicated, coordinators, calls, appendFailures>>
leadership == <<leaderless, leaderChanges>>
partitions == <<log, highWatermark, entry, verifying, leadership>>
applications == <<begun, asked, told>>
vars == <<coordination, requests, clients, partitions, applications>>
GhostVars == {"begun", "asked", "told", "leaderChanges", "appendFailures"}

NoEpoch == -1
NoTransaction == 0
NoClient == "none"
Transactions == 1..MaxTransactions
Sequences == 0..(MaxBatches - 1)
Tenures == 1..MaxTenures
Epochs == 0..MaxEpoch

(***************************************************************************)
(* States of a transaction, and the moves that TransactionState allows.    *)
(***************************************************************************)
Prepares == {"PrepareCommit", "PrepareAbort"}
Completes == {"CompleteCommit", "CompleteAbort"}
StatesOfId == {"Empty", "Ongoing"} \union Prepares \union Completes
States == StatesOfId   \* and what follows the last one, in TransactionExpiry
Prepare(commits) == IF commits THEN "PrepareCommit" ELSE "PrepareAbort"
Complete(commits) == IF commits THEN "CompleteCommit" ELSE "CompleteAbort"
Commits(state) == state \in {"PrepareCommit", "CompleteCommit"}
MarkerKind(state) == IF Commits(state) THEN "Committed" ELSE "Aborted"

MovesOfId ==
  ({"Empty"} \union Completes) \X {"Empty", "Ongoing"}
    \union {"Ongoing"} \X ({"Ongoing"} \union Prepares)
    \union {<<"PrepareCommit", "CompleteCommit">>, <<"PrepareAbort", "CompleteAbort">>}
    \union (IF Version2 THEN ({"Empty"} \union Completes) \X {"PrepareAbort"} ELSE {})
LegalMoves == MovesOfId

(***************************************************************************)
(* A record of __transaction_state. `client` is the instance that asked    *)
(* for an epoch, `request` the transaction whose EndTxn has led to it.     *)
(***************************************************************************)
TxnRecord(state, epoch, parts, txn, client, request) ==
  [state |-> state, epoch |-> epoch, parts |-> parts, txn |-> txn, client |-> client,
   request |-> request]
Started == TxnRecord("Empty", 0, {}, NoTransaction, "a", NoTransaction)
Unknown == TxnRecord("Empty", NoEpoch, {}, NoTransaction, NoClient, NoTransaction)

\* Whoever loads a record does not know which request it comes from, and owes it no answer.
AsLoaded(record) == [record EXCEPT !.client = NoClient, !.request = NoTransaction]

LastRecord(records) == IF records = <<>> THEN Unknown ELSE records[Len(records)]

(***************************************************************************)
(* A coordinator: what it knows of the id (`now`, as a record), and        *)
(* TransactionMetadata.pendingState. `tenure` is 0 where nothing is loaded.*)
(***************************************************************************)
Absent == [tenure |-> 0, loaded |-> FALSE, now |-> Unknown, pending |-> "None"]

Serves(c) == coordinators[c].loaded
Now(c) == coordinators[c].now
\* What needs no append is answered by a coordinator that was replaced, too.
AnswersUnwritten(c) == Serves(c)
Leads(c) == leader = c /\ coordinators[c].tenure = tenure

(***************************************************************************)
(* Requests.                                                               *)
(***************************************************************************)
EndTxn(epoch, commits, txn) ==
  [type |-> "EndTxn", epoch |-> epoch, commits |-> commits, txn |-> txn]
Batch(p, epoch, sequence, txn) ==
  [type |-> "Produce", partition |-> p, epoch |-> epoch, sequence |-> sequence, txn |-> txn]
Marker(p, kind, epoch, coordinatorEpoch, txn) ==
  [type |-> "Marker", partition |-> p, kind |-> kind, epoch |-> epoch,
   coordinatorEpoch |-> coordinatorEpoch, txn |-> txn]

\* A request that is not late is gone once its answer has come.
Gone(answered) == {m \in answered : m.type \notin Late}

(***************************************************************************)
(* Partitions: ProducerStateManager, as a function of the log.             *)
(***************************************************************************)
Producer == "t"
DataRecord(m) ==
  [kind |-> "data", producer |-> Producer, epoch |-> m.epoch, coordinatorEpoch |-> 0,
   sequence |-> m.sequence, txn |-> m.txn]
MarkerRecord(m) ==
  [kind |-> m.kind, producer |-> Producer, epoch |-> m.epoch,
   coordinatorEpoch |-> m.coordinatorEpoch, sequence |-> -1, txn |-> m.txn]

Markers(p) == MarkersOf(log[p], Producer)
Open(p) == OpenIn(log[p], Producer)
HasLeader(p) == p \notin leaderless
StoredEpoch(p) == IF log[p] = <<>> THEN NoEpoch ELSE log[p][Len(log[p])].epoch
StoredCoordinatorEpoch(p) ==
  IF Markers(p) = {} THEN 0 ELSE log[p][Last(Markers(p))].coordinatorEpoch
CopiesIn(p, record) == {i \in DOMAIN log[p] : log[p][i] = record}

\* A partition that does not change leaders has its appends replicated at once.
WithAppended(p, record) ==
  /\ log' = [log EXCEPT ![p] = Append(@, record)]
  /\ highWatermark' =
       IF MaxLeaderChanges = 0 THEN [highWatermark EXCEPT ![p] = Len(log[p]) + 1]
       ELSE highWatermark

(***************************************************************************)
(* A producer. `added` are the partitions that the coordinator has         *)
(* acknowledged (version 1), `sent` the batches of its epoch.              *)
(***************************************************************************)
Client(state, epoch, txn, added, sent, commits) ==
  [state |-> state, epoch |-> epoch, txn |-> txn, added |-> added, sent |-> sent,
   commits |-> commits]
IsAcknowledged(m) ==
  \E i \in CopiesIn(m.partition, DataRecord(m)) : i <= highWatermark[m.partition]
SentIn(i) == {m \in clients[i].sent : m.txn = clients[i].txn}

Init ==
  \E c \in Coordinators :
    /\ c = CHOOSE first \in Coordinators : TRUE
    /\ leader = c /\ tenure = 1
    /\ transactionLog = <<Started>> /\ replicated = 1
    /\ coordinators = [b \in Coordinators |->
         IF b = c THEN [tenure |-> 1, loaded |-> TRUE, now |-> Started, pending |-> "None"]
         ELSE Absent]
    /\ calls = {} /\ requests = {}
    /\ clients = [i \in Clients |->
         Client(IF i = "a" THEN "Ready" ELSE "Initializing",
                IF i = "a" THEN 0 ELSE NoEpoch, NoTransaction, {}, {}, FALSE)]
    /\ log = [p \in Partitions |-> <<>>]
    /\ highWatermark = [p \in Partitions |-> 0]
    /\ entry = [p \in Partitions |-> NoEpoch] /\ verifying = {} /\ leaderless = {}
    /\ begun = 0 /\ asked = {} /\ told = {} /\ leaderChanges = 0 /\ appendFailures = 0
===============================================================================
