---------------------------- MODULE FetcherThreads ----------------------------
(***************************************************************************)
(* The fetcher threads of one follower, and what each of them does with    *)
(* several partitions: a thread serves the partitions of one leader that   *)
(* have its number; partitions come, go, fail and move to other threads    *)
(* while a fetch of theirs is under way; a thread may end by an error.     *)
(*                                                                         *)
(* The logs are counters here, and an answer brings one record of each     *)
(* partition. Epochs of records and truncation are in Replication, which   *)
(* has one partition; the session of a fetch is in FetchSessions.          *)
(*                                                                         *)
(* Left out: leaders that change their address, and moves between          *)
(* directories (DirectoryMove), whose threads have the same manager.       *)
(***************************************************************************)
EXTENDS Integers, FiniteSets

CONSTANTS
  Partitions,     \* numbers, from 0
  Leaders,        \* brokers that lead them
  Epochs,         \* of each partition, from 1
  MaxOffset,      \* where a leader's log ends
  HighWatermark,  \* what each answer says
  PoolSizes,      \* num.replica.fetchers, which may be changed
  Outcomes,       \* what a partition is answered: see AnswerFetch
  Events          \* what else happens: names of actions

(***************************************************************************)
(* The variables, and the field of the real broker that each stands for.   *)
(*                                                                         *)
(* variable | field                                                        *)
(* ---------+------------------------------------------------------------- *)
(* threads  | AbstractFetcherManager.fetcherThreadMap: of each leader and  *)
(*          | number; ended: isThreadFailed                                *)
(* followed | AbstractFetcherThread.partitionStates, of the thread at      *)
(*          | `leader` and `fetcher`; lag -1: none yet                     *)
(* failed   | FailedPartitions (KIP-461)                                   *)
(* asked    | of each thread the fetch that is under way: what it asks of  *)
(*          | each partition                                               *)
(* poolSize | numFetchersPerBroker                                         *)
(* exceeded | ReplicaQuota.isQuotaExceeded                                 *)
(* logEnd   | UnifiedLog.logEndOffset                                      *)
(* gauges   | DeadThreadCount, FailedPartitionsCount, MaxLag, and          *)
(*          | FetcherLagMetrics.ConsumerLag of each partition; -1: none    *)
(* ---------+------------------------------------------------------------- *)
(* The rest of the broker has these:                                       *)
(* epoch    | the leader epoch that was heard of last                      *)
(* wanted   | the leader that the partition is to be fetched from         *)
(***************************************************************************)
VARIABLES threads, followed, failed, asked, poolSize, exceeded, logEnd, gauges, epoch, wanted

fetchVars == <<threads, followed, failed, asked, logEnd>>
vars == <<fetchVars, poolSize, exceeded, gauges, epoch, wanted>>

None     == -1
NoLeader == "none"
FetcherIds == {id \in 0..3 : \E size \in PoolSizes : id < size}

NotFollowed ==
  [leader |-> NoLeader, fetcher |-> 0, epoch |-> None, offset |-> None, lag |-> None, delayed |-> FALSE]
NotAsked  == [epoch |-> None, offset |-> None]
NoRequest == [p \in Partitions |-> NotAsked]
NoThreads == [l \in Leaders |-> [id \in FetcherIds |-> "none"]]
NoRequests == [l \in Leaders |-> [id \in FetcherIds |-> NoRequest]]

IsFollowed(p) == followed[p] # NotFollowed
PartitionsOf(states, l, id) ==
  {p \in Partitions : states[p].leader = l /\ states[p].fetcher = id}

(***************************************************************************)
(* What an operator sees.                                                  *)
(***************************************************************************)
Maximum(numbers) == CHOOSE n \in numbers : \A other \in numbers : other <= n

GaugesOf(pool, states, failures) ==
  [dead   |-> Cardinality({<<l, id>> \in Leaders \X FetcherIds : pool[l][id] = "ended"}),
   failed |-> Cardinality(failures),
   maxLag |-> Maximum({0} \union {states[p].lag : p \in Partitions}),
   lags   |-> [p \in Partitions |-> states[p].lag]]

SeesGauges == gauges' = GaugesOf(threads', followed', failed')

Init ==
  /\ threads = NoThreads /\ followed = [p \in Partitions |-> NotFollowed] /\ failed = {}
  /\ asked = NoRequests
  /\ poolSize \in PoolSizes /\ \A size \in PoolSizes : poolSize <= size
  /\ exceeded = FALSE
  /\ logEnd = [p \in Partitions |-> 1]
  /\ gauges = GaugesOf(threads, followed, failed)
  /\ epoch = [p \in Partitions |-> 0] /\ wanted = [p \in Partitions |-> NoLeader]

(***************************************************************************)
(* The manager. ReplicaManager calls it as it handles metadata: remove,    *)
(* add, and at last end the threads that have nothing left to do.          *)
(***************************************************************************)
\* AbstractFetcherManager.getFetcherId
FetcherId(p, size) == p % size

WithThread(pool, l, id) == IF pool[l][id] = "none" THEN [pool EXCEPT ![l][id] = "runs"] ELSE pool

\* The state with which a partition begins: the follower has records, so it need not truncate.
Begins(l, size, p, e) ==
  [NotFollowed EXCEPT !.leader = l, !.fetcher = FetcherId(p, size), !.epoch = e,
                      !.offset = logEnd[p]]

FailuresAfterAdd(p) == failed \ {p}

\* AbstractFetcherManager.addFetcherForPartitions. A thread of the leader that has ended is taken
\* like any other.
AddFetcher(p, l) ==
  /\ ~IsFollowed(p) /\ epoch[p] + 1 \in Epochs
  /\ epoch' = [epoch EXCEPT ![p] = @ + 1]
  /\ wanted' = [wanted EXCEPT ![p] = l]
  /\ threads' = WithThread(threads, l, FetcherId(p, poolSize))
  /\ followed' = [followed EXCEPT ![p] = Begins(l, poolSize, p, epoch[p] + 1)]
  /\ failed' = FailuresAfterAdd(p)
  /\ UNCHANGED <<asked, logEnd, poolSize, exceeded>>
  /\ SeesGauges

\* AbstractFetcherThread.partitionFetchState: the state of the same epoch stays.
AddAgain(p) ==
  /\ "AddAgain" \in Events /\ IsFollowed(p)
  /\ UNCHANGED vars

RemoveFetcher(p) ==
  /\ wanted[p] # NoLeader
  /\ wanted' = [wanted EXCEPT ![p] = NoLeader]
  /\ followed' = [followed EXCEPT ![p] = NotFollowed]
  /\ failed' = failed \ {p}
  /\ UNCHANGED <<threads, asked, logEnd, poolSize, exceeded, epoch>>
  /\ SeesGauges

\* A thread that is shut down gives up its fetch; who waits for its end waits for no answer.
IsIdle(pool, states, l, id) == pool[l][id] # "none" /\ PartitionsOf(states, l, id) = {}
WithoutIdle(pool, states) ==
  [l \in Leaders |-> [id \in FetcherIds |->
     IF IsIdle(pool, states, l, id) THEN "none" ELSE pool[l][id]]]
WithoutRequests(pool) ==
  [l \in Leaders |-> [id \in FetcherIds |-> IF pool[l][id] = "none" THEN NoRequest ELSE asked[l][id]]]

\* AbstractFetcherManager.shutdownIdleFetcherThreads, also of threads that have ended.
ShutdownIdle ==
  /\ WithoutIdle(threads, followed) # threads
  /\ threads' = WithoutIdle(threads, followed)
  /\ asked' = WithoutRequests(threads')
  /\ UNCHANGED <<followed, failed, logEnd, poolSize, exceeded, epoch, wanted>>
  /\ SeesGauges

\* A partition that moves to another thread begins anew, where it was.
Moved(size, p) ==
  IF ~IsFollowed(p) THEN NotFollowed
  ELSE [Begins(followed[p].leader, size, p, followed[p].epoch) EXCEPT !.offset = followed[p].offset]

MovedThreads(states) ==
  [l \in Leaders |-> [id \in FetcherIds |->
     IF PartitionsOf(states, l, id) # {} THEN WithThread(threads, l, id)[l][id] ELSE threads[l][id]]]

\* AbstractFetcherManager.resizeThreadPool: all partitions leave their threads before any is added
\* (KAFKA-13772), and idle threads end. A failure is forgotten of none: failed ones are not followed.
Resize(size) ==
  /\ "Resize" \in Events /\ size # poolSize
  /\ poolSize' = size
  /\ followed' = [p \in Partitions |-> Moved(size, p)]
  /\ threads' = WithoutIdle(MovedThreads(followed'), followed')
  /\ asked' = WithoutRequests(threads')
  /\ UNCHANGED <<failed, logEnd, exceeded, epoch, wanted>>
  /\ SeesGauges

(***************************************************************************)
(* A thread.                                                               *)
(***************************************************************************)
\* RemoteLeaderEndPoint.shouldFollowerThrottle: who is in sync is not throttled (KAFKA-4313).
IsInSync(p)    == followed[p].lag = 0
IsThrottled(p) == exceeded /\ ~IsInSync(p)
IsReady(p)     == ~followed[p].delayed /\ ~IsThrottled(p)
ReadyOf(l, id) == {p \in PartitionsOf(followed, l, id) : IsReady(p)}

MayTurn(l, id) == threads[l][id] = "runs" /\ asked[l][id] = NoRequest /\ ReadyOf(l, id) # {}

\* AbstractFetcherThread.maybeFetch, up to the request: of all partitions that are ready.
SendFetch(l, id) ==
  /\ MayTurn(l, id)
  /\ asked' = [asked EXCEPT ![l][id] =
                 [p \in Partitions |->
                    IF p \in ReadyOf(l, id)
                    THEN [epoch |-> followed[p].epoch, offset |-> followed[p].offset]
                    ELSE NotAsked]]
  /\ UNCHANGED <<threads, followed, failed, logEnd, poolSize, exceeded, gauges, epoch, wanted>>

IsAsked(l, id, p) == asked[l][id][p] # NotAsked

\* The partition may have been removed, and added again, since; it may be another thread's.
StillExpected(l, id, p) ==
  /\ p \in PartitionsOf(followed, l, id) /\ ~followed[p].delayed
  /\ followed[p].offset = asked[l][id][p].offset

\* Data that was asked for in another leader epoch does not count (see ReplicationLateFetches).
DataCounts(l, id, p) == followed[p].epoch = asked[l][id][p].epoch

Lag(offset) == IF HighWatermark > offset THEN HighWatermark - offset ELSE 0

\* What becomes of one partition: [state, failed, end].
Unchanged(p) == [state |-> followed[p], failed |-> FALSE, end |-> logEnd[p]]
Delayed(p)   == [Unchanged(p) EXCEPT !.state.delayed = TRUE]
Fails(p)     == [Unchanged(p) EXCEPT !.state = NotFollowed, !.failed = TRUE]

Appended(p) ==
  LET next == followed[p].offset + 1
  IN  [state |-> [followed[p] EXCEPT !.offset = next, !.lag = Lag(next)], failed |-> FALSE,
       end |-> next]

\* An idle partition needs its first lag, too, or it counts as out of sync (KAFKA-15080).
Empty(p) == [Unchanged(p) EXCEPT !.state.lag = IF @ = None THEN Lag(followed[p].offset) ELSE @]

\* processFetchRequest. Whatever is wrong with one partition is that partition's matter (KAFKA-8346).
AfterAnswer(l, id, p, outcome) ==
  IF ~StillExpected(l, id, p) THEN Unchanged(p)
  ELSE CASE outcome = "fenced"  -> IF DataCounts(l, id, p) THEN Fails(p) ELSE Delayed(p)
         [] outcome = "unknown" -> Delayed(p)
         [] ~DataCounts(l, id, p) -> Unchanged(p)
         [] outcome = "records" -> Appended(p)
         [] outcome = "nothing" -> Empty(p)
         [] outcome = "corrupt" -> Delayed(p)
         [] OTHER               -> Fails(p)

\* What the other partitions of the same fetch are answered.
UsualOutcome(l, id, p) == IF asked[l][id][p].offset < MaxOffset THEN "records" ELSE "nothing"

OutcomeOf(l, id, p, special, outcome) ==
  IF p = special THEN outcome ELSE UsualOutcome(l, id, p)

Answered(l, id, p, special, outcome) ==
  IF IsAsked(l, id, p) THEN AfterAnswer(l, id, p, OutcomeOf(l, id, p, special, outcome))
  ELSE Unchanged(p)

\* The leader answers, and the thread takes it in, partition by partition. `outcome` is what one of
\* them gets: records, nothing, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, a batch that is corrupt,
\* or records that cannot be appended.
AnswerFetch(l, id, special, outcome) ==
  /\ IsAsked(l, id, special)
  /\ outcome \in Outcomes /\ (outcome = "records" => asked[l][id][special].offset < MaxOffset)
  /\ LET after == [p \in Partitions |-> Answered(l, id, p, special, outcome)]
     IN  /\ followed' = [p \in Partitions |-> after[p].state]
         /\ failed' = failed \union {p \in Partitions : after[p].failed}
         /\ logEnd' = [p \in Partitions |-> after[p].end]
  /\ asked' = [asked EXCEPT ![l][id] = NoRequest]
  /\ UNCHANGED <<threads, poolSize, exceeded, epoch, wanted>>
  /\ SeesGauges

\* No answer comes: all partitions of the thread wait, also those that came since.
LoseAnswer(l, id) ==
  /\ "LoseAnswer" \in Events /\ asked[l][id] # NoRequest
  /\ followed' = [p \in Partitions |->
                    IF p \in PartitionsOf(followed, l, id) THEN [followed[p] EXCEPT !.delayed = TRUE]
                    ELSE followed[p]]
  /\ asked' = [asked EXCEPT ![l][id] = NoRequest]
  /\ UNCHANGED <<threads, failed, logEnd, poolSize, exceeded, gauges, epoch, wanted>>

\* ShutdownableThread.run: an error that nobody expects escapes doWork, and ends the thread. Its
\* partitions stay with it.
EndThread(l, id) ==
  /\ "EndThread" \in Events /\ MayTurn(l, id)
  /\ threads' = [threads EXCEPT ![l][id] = "ended"]
  /\ UNCHANGED <<followed, failed, asked, logEnd, poolSize, exceeded, epoch, wanted>>
  /\ SeesGauges

PassBackoff ==
  /\ \E p \in Partitions : followed[p].delayed
  /\ followed' = [p \in Partitions |-> [followed[p] EXCEPT !.delayed = FALSE]]
  /\ UNCHANGED <<threads, failed, asked, logEnd, poolSize, exceeded, gauges, epoch, wanted>>

\* ReplicationQuotaManager: bytes come, or time passes.
ToggleQuota ==
  /\ "ToggleQuota" \in Events
  /\ exceeded' = ~exceeded
  /\ UNCHANGED <<fetchVars, poolSize, gauges, epoch, wanted>>

Next ==
  \/ \E p \in Partitions : AddAgain(p) \/ RemoveFetcher(p)
  \/ \E p \in Partitions, l \in Leaders : AddFetcher(p, l)
  \/ ShutdownIdle \/ PassBackoff \/ ToggleQuota
  \/ \E size \in PoolSizes : Resize(size)
  \/ \E l \in Leaders, id \in FetcherIds : SendFetch(l, id) \/ LoseAnswer(l, id) \/ EndThread(l, id)
  \/ \E l \in Leaders, id \in FetcherIds, p \in Partitions, outcome \in Outcomes :
       AnswerFetch(l, id, p, outcome)

Spec == Init /\ [][Next]_vars

(***************************************************************************)
(* What must hold.                                                         *)
(***************************************************************************)
Threads == Leaders \X FetcherIds

TypeOK ==
  /\ \A t \in Threads : threads[t[1]][t[2]] \in {"none", "runs", "ended"}
  /\ failed \subseteq Partitions /\ poolSize \in PoolSizes /\ exceeded \in BOOLEAN
  /\ \A p \in Partitions : logEnd[p] \in 1..MaxOffset /\ wanted[p] \in Leaders \union {NoLeader}

\* What the broker is to follow is followed from its leader, or known as failed: no partition is
\* forgotten.
WantedIsFollowed ==
  \A p \in Partitions : wanted[p] # NoLeader => followed[p].leader = wanted[p] \/ p \in failed

UnwantedIsNotFollowed == \A p \in Partitions : wanted[p] = NoLeader => ~IsFollowed(p) /\ p \notin failed
FailedIsNotFollowed == \A p \in failed : ~IsFollowed(p)

\* ... by the thread of its number, which is there.
FollowedByItsThread ==
  \A p \in Partitions : IsFollowed(p) =>
    /\ followed[p].fetcher = FetcherId(p, poolSize)
    /\ threads[followed[p].leader][followed[p].fetcher] # "none"

\* The next fetch begins where the log ends: no record is left out or comes twice.
FetchesAtLogEnd == \A p \in Partitions : IsFollowed(p) => followed[p].offset = logEnd[p]

\* Who is in sync stays in sync, however much the others bring.
InSyncIsReady ==
  \A p \in Partitions : IsFollowed(p) /\ followed[p].lag = 0 /\ ~followed[p].delayed => IsReady(p)

\* A metric never promises less, nor more, than there is.
LagIsTrue ==
  \A p \in Partitions : gauges.lags[p] \in {None, Lag(logEnd[p])} /\ gauges.maxLag >= gauges.lags[p]
EndIsCounted == gauges.dead > 0 <=> \E t \in Threads : threads[t[1]][t[2]] = "ended"

\* What is wrong with one partition keeps no other from its records (KIP-461).
OthersGoOn ==
  [][\A t \in Threads, p, special \in Partitions, outcome \in Outcomes :
       /\ AnswerFetch(t[1], t[2], special, outcome) /\ p # special
       /\ IsAsked(t[1], t[2], p) /\ StillExpected(t[1], t[2], p) /\ DataCounts(t[1], t[2], p)
       /\ asked[t[1]][t[2]][p].offset < MaxOffset
       => logEnd'[p] = logEnd[p] + 1 /\ threads'[t[1]][t[2]] = "runs"]_vars

\* An answer counts for what it was asked for only: same thread, same epoch, same offset.
FitsRequest(l, id, p) ==
  /\ p \in PartitionsOf(followed, l, id)
  /\ followed[p].epoch = asked[l][id][p].epoch /\ followed[p].offset = asked[l][id][p].offset

OldAnswerChangesNothing ==
  [][\A t \in Threads, p \in Partitions :
       asked[t[1]][t[2]] # NoRequest /\ asked'[t[1]][t[2]] = NoRequest /\ logEnd'[p] # logEnd[p]
         => FitsRequest(t[1], t[2], p)]_vars

\* Nothing is left of a thread that follows nothing.
IdleIsShutDown ==
  [][(ShutdownIdle \/ poolSize' # poolSize) =>
       \A t \in Threads : threads'[t[1]][t[2]] = "none" \/ PartitionsOf(followed', t[1], t[2]) # {}]_vars

\* Where the promise ends: a thread that has ended is not replaced while it has a partition.
FollowedIsServed ==
  \A p \in Partitions : IsFollowed(p) => threads[followed[p].leader][followed[p].fetcher] = "runs"

(***************************************************************************)
(* Situations that a suite shall show.                                     *)
(***************************************************************************)
AnswerOfAnotherEpoch ==
  \E t \in Threads, p \in Partitions :
    IsAsked(t[1], t[2], p) /\ StillExpected(t[1], t[2], p) /\ ~DataCounts(t[1], t[2], p)
AddedToEndedThread ==
  \E p \in Partitions : epoch[p] > 1 /\ IsFollowed(p)
    /\ threads[followed[p].leader][followed[p].fetcher] = "ended"
===============================================================================
