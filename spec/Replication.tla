----------------------------- MODULE Replication -----------------------------
(***************************************************************************)
(* Kafka's replication of one partition: what must hold, each with what it *)
(* means to a user. Below it: ReplicationProtocol (crashes, Spec),         *)
(* ReplicationPartition and ReplicationController, ReplicationRoundTrips   *)
(* and ReplicationFetch, ReplicationState, ReplicationLog.                 *)
(*                                                                         *)
(* Which formula a model checks stands in its manifest. Not all hold of    *)
(* all: the historical protocols are there to break them, and what a       *)
(* formula presupposes (clean elections, no crash, one granularity) is     *)
(* said beside it.                                                         *)
(***************************************************************************)
EXTENDS ReplicationProtocol

(***************************************************************************)
(* Types.                                                                  *)
(***************************************************************************)
Logs == UNION {[1..n -> Epochs] : n \in Offsets}

FollowerMessage ==
  [type : MessageTypes, leader : BrokersOrNone, currentLeaderEpoch : EpochsOrNone,
   brokerEpoch : BrokerEpochs, fetchOffset : Offsets, lastEpoch : EpochsOrNone,
   error : Errors, epoch : EpochsOrNone, endOffset : OffsetsOrNone,
   records : {<<>>} \union {<<e>> : e \in Epochs},
   highWatermark : Offsets, logStartOffset : Offsets]

AlterPartitionMessage ==
  [type : {"None", "Request", "Response"}, leaderEpoch : EpochsOrNone,
   partitionEpoch : PartitionEpochs, isr : SUBSET Brokers,
   brokerEpochs : [Brokers -> BrokerEpochs \union {NoEpoch}],
   error : AlterPartitionErrors]

LeaderAndIsrRequest ==
  [present : BOOLEAN, leader : BrokersOrNone, isr : SUBSET Brokers,
   partitionEpoch : PartitionEpochs]

CacheIsTyped(cache) ==
  \A i \in 1..Len(cache) : cache[i] \in [epoch : Epochs, start : Offsets]

TypeOK ==
  /\ registration \in [leader : BrokersOrNone, leaderEpoch : Epochs,
                       isr : SUBSET Brokers, partitionEpoch : PartitionEpochs]
  /\ leaderAndIsr \in [Epochs -> LeaderAndIsrRequest]
  /\ online \in [Brokers -> BOOLEAN]
  /\ brokerEpoch \in [Brokers -> BrokerEpochs]
  /\ leaderEpoch \in [Brokers -> EpochsOrNone]
  /\ leader \in [Brokers -> BrokersOrNone]
  /\ isr \in [Brokers -> SUBSET Brokers]
  /\ partitionEpoch \in [Brokers -> PartitionEpochs]
  /\ pendingIsr \in [Brokers -> SUBSET Brokers]
  /\ followerState \in [Brokers -> [Brokers -> [logEndOffset : OffsetsOrNone,
                                                brokerEpoch : BrokerEpochs \union {NoEpoch}]]]
  /\ log \in [Brokers -> Logs]
  /\ logStartOffset \in [Brokers -> Offsets]
  /\ highWatermark \in [Brokers -> Offsets]
  /\ DOMAIN epochCache = Brokers
  /\ \A b \in Brokers : CacheIsTyped(epochCache[b])
  /\ fetchState \in [Brokers -> {"None", "Truncating", "Fetching", "Failed"}]
  /\ fetchOffset \in [Brokers -> Offsets]
  /\ channel \in [Connections -> FollowerMessage]
  /\ alterPartition \in [Brokers -> AlterPartitionMessage]
  /\ exposed \in SUBSET [offset : Offsets, epoch : Epochs]
  /\ appends \in AppendCounts
  /\ guaranteedFrom \in Epochs \union {Cardinality(Epochs) + InitialEpoch}

(***************************************************************************)
(* Reading logs.                                                           *)
(***************************************************************************)
Holds(b, o)   == logStartOffset[b] <= o /\ o < LogEndOffset(b)
EpochAt(b, o) == log[b][o - logStartOffset[b] + 1]

\* b has the record, or had it until its log start passed it.
HasRecord(b, record) ==
  \/ record.offset < logStartOffset[b]
  \/ Holds(b, record.offset) /\ EpochAt(b, record.offset) = record.epoch

Agrees(b, l, o) == HasRecord(b, [offset |-> o, epoch |-> EpochAt(l, o)])

AgreesBelowHighWatermark(b, l) ==
  \A o \in Offsets : Holds(l, o) /\ o < highWatermark[l] => Agrees(b, l, o)

\* Leaders whose exposed records are owed; all of them while elections are clean.
OwingLeaders == {l \in Brokers : ActingLeader(l) /\ leaderEpoch[l] >= guaranteedFrom}

\* The leader by the controller's word, once it knows.
TrueLeader(l) ==
  ActingLeader(l) /\ registration.leader = l /\ registration.leaderEpoch = leaderEpoch[l]

\* What a holds below the offset end, b has too (or had, below its log start).
IsPrefixUpTo(a, b, end) ==
  \A o \in Offsets : o < end /\ Holds(a, o) /\ o >= logStartOffset[b] => Agrees(b, a, o)

(***************************************************************************)
(* Invariants: leadership and the ISR.                                     *)
(***************************************************************************)

\* Two brokers never lead in the same epoch: an epoch names one history.
OneLeaderPerEpoch ==
  \A a, b \in Brokers :
    ActingLeader(a) /\ ActingLeader(b) /\ leaderEpoch[a] = leaderEpoch[b] => a = b

\* There is always a replica to elect, and the leader is one of them.
LeaderInIsr ==
  /\ registration.isr # {}
  /\ registration.leader # NoLeader => registration.leader \in registration.isr

\* Nobody acts on an epoch that the controller has not given out.
KnownEpochIsRegistered == \A b \in Brokers : leaderEpoch[b] <= registration.leaderEpoch

\* Of a partition without a leader nobody whom the controller could elect takes itself for the
\* leader. Not so where the session of one that runs expires: see the model of it.
OfflineHasNoLeader ==
  registration.leader = NoLeader => \A b \in registration.isr : ~ActingLeader(b)

\* The leader waits for everybody whom the controller could elect.
IsrWithinMaximalIsr ==
  \A l \in Brokers : TrueLeader(l) =>
    registration.isr \subseteq MaximalIsr(isr[l], pendingIsr[l])

(***************************************************************************)
(* Invariants: one replica.                                                *)
(***************************************************************************)

\* Consumers are never sent to an offset that the replica does not have.
HighWatermarkWithinLog ==
  \A b \in Brokers : /\ logStartOffset[b] <= highWatermark[b]
                     /\ highWatermark[b] <= LogEndOffset(b)

\* A leader that is alone in its ISR lets consumers read all that it has. Where a change of the ISR
\* is one step. Not so where it waits for followers about to join: see the model of it.
LoneLeaderExposesAll ==
  \A l \in Brokers : ActingLeader(l) /\ isr[l] = {l} /\ ~TwoStepIsr
                       => highWatermark[l] = LogEndOffset(l)

\* Later records never come from an older leader.
EpochsNonDecreasing ==
  \A b \in Brokers : \A i \in 1..(Len(log[b]) - 1) : log[b][i] <= log[b][i + 1]

\* A replica has no record from an epoch that it has not heard of: what it stores
\* it got from the leader it follows.
RecordEpochIsKnown ==
  \A b \in Brokers : online[b] /\ leaderEpoch[b] # NoEpoch =>
    \A i \in 1..Len(log[b]) : log[b][i] <= leaderEpoch[b]

\* The epoch cache, by which truncation decides, tells the log's epochs; but for a
\* last entry at the log end, of an epoch in which nothing is written (yet).
EpochCacheMatchesLog ==
  \A b \in Brokers :
    LET cache == epochCache[b]
        whole == CacheOf(Replica(b))
        n     == Len(cache)
    IN  \/ cache = whole
        \/ /\ n = Len(whole) + 1
           /\ SubSeq(cache, 1, n - 1) = whole
           /\ cache[n].start = LogEndOffset(b)
           /\ whole # <<>> => cache[n].epoch > whole[n - 1].epoch

\* A leader's cache has its own epoch (KAFKA-7415): a follower that asks about the
\* epoch before gets the offset at which this leader took over.
LeaderEpochIsCached ==
  \A l \in Brokers : ActingLeader(l) => LatestEpoch(epochCache[l]) = leaderEpoch[l]

\* The answer to OffsetsForLeaderEpoch is what the log itself says.
EndOffsetIsExact ==
  \A l \in Brokers : ActingLeader(l) /\ logStartOffset[l] = 0 =>  \* else old entries are gone
    LET known == {log[l][i] : i \in 1..Len(log[l])} \union {leaderEpoch[l]}
    IN  \A asked \in {e \in Epochs : e <= leaderEpoch[l]} :
          LET upTo   == {e \in known : e <= asked}
              above  == {i \in 1..Len(log[l]) : log[l][i] > asked}
              end    == IF above = {} THEN LogEndOffset(l) ELSE Smallest(above) - 1
              answer == EndOffsetFor(epochCache[l], asked, LogEndOffset(l))
          IN  upTo # {} => /\ answer.offset = end
                           /\ answer.epoch = (CHOOSE e \in upTo : \A other \in upTo : other <= e)

\* A follower fetches from where its log ends: nothing skipped, nothing twice.
FetchOffsetIsLogEnd ==
  \A b \in Brokers : fetchState[b] = "Fetching" /\ ~HoldsPartitionMapLock(b) =>
    fetchOffset[b] = LogEndOffset(b)

\* A partition that failed waits for LeaderAndIsr; its fetcher asks nothing for it.
FailedPartitionNotFetched ==
  \A b \in Brokers : fetchState[b] = "Failed" => channel[b].type = "None"

\* A leader does not fetch; a follower's partition is fetched or has failed.
FetchedIffFollower ==
  \A b \in Brokers :
    (fetchState[b] = "None") <=> (ActingLeader(b) \/ leader[b] = NoLeader)

(***************************************************************************)
(* Invariants: replicas together.                                          *)
(***************************************************************************)

\* Below a leader's high watermark, every member of the ISR as this leader knows it
\* agrees with it. Presupposes that no broker crashes (a leader may be late to hear
\* that a member lost its tail).
WeakIsr ==
  \A l \in OwingLeaders : \A b \in isr[l] \ {l} : AgreesBelowHighWatermark(b, l)

\* Below a leader's high watermark, every member of the true ISR that runs agrees
\* with it: whatever consumers of any leader could read, whom the controller may
\* elect has.
StrongIsr ==
  \A l \in OwingLeaders : \A b \in registration.isr \ {l} :
    online[b] => AgreesBelowHighWatermark(b, l)

\* A record once exposed below the high watermark of a leader is, at its offset, in
\* the log of every later true leader. The guarantee ends with the record's deletion;
\* with an unclean election (for what leaders of older epochs exposed, before or after
\* it); and where no ISR member runs any longer (for what one of them has lost of its
\* unflushed tail, and what leaders of older epochs still expose).
CommittedNeverLost ==
  \A l \in Brokers : TrueLeader(l) => \A record \in exposed : HasRecord(l, record)

\* The same of everybody whom the controller may elect.
ElectableHasExposed ==
  \A b \in registration.isr : online[b] => \A record \in exposed : HasRecord(b, record)

\* No two consumers ever read different records at one offset.
OneExposedRecordPerOffset ==
  \A r1, r2 \in exposed : r1.offset = r2.offset => r1 = r2

\* Two logs that agree on one record agree on all before it; otherwise they diverge
\* silently, for ever.
LogMatching ==
  \A a \in Brokers : \A b \in Brokers \ {a} : \A o \in Offsets :
    Holds(a, o) /\ Holds(b, o) /\ EpochAt(a, o) = EpochAt(b, o) => IsPrefixUpTo(a, b, o)

\* A follower that is past truncation, and in the leader's epoch, has a prefix of the
\* leader's log. Not TruncateOnFetch, where fetching itself finds the divergence.
FetchingFollowerIsPrefix ==
  \A f \in Brokers : \A l \in Brokers :
    /\ fetchState[f] = "Fetching" /\ ActingLeader(l) /\ leaderEpoch[f] = leaderEpoch[l]
    /\ ~HoldsPartitionMapLock(f)
    => /\ LogEndOffset(f) <= LogEndOffset(l)
       /\ IsPrefixUpTo(f, l, LogEndOffset(f))

\* The leader never believes a follower to have more than it has: else it would
\* expose a record that only it holds. (But for a crash.)
RememberedPositionExists ==
  \A l \in Brokers : \A f \in Brokers \ {l} :
    ActingLeader(l) /\ leaderEpoch[f] = leaderEpoch[l] =>
      followerState[l][f].logEndOffset <= LogEndOffset(f)

\* A fetch that its leader would serve comes from a follower whose log is a prefix of
\* the leader's (TruncateOnFetch: no divergence goes unnoticed).
NoDivergenceMissed ==
  \A f \in Brokers : \A l \in Brokers :
    /\ channel[f].type = "FetchRequest" /\ channel[f].leader = l /\ online[l]
    /\ leader[f] = l /\ leaderEpoch[f] = leaderEpoch[l]
    /\ fetchState[f] = "Fetching" /\ channel[f].fetchOffset = LogEndOffset(f)
    /\ channel[f].currentLeaderEpoch = leaderEpoch[f]
    /\ FetchWasServed(FetchAnswer(l, f, channel[f]))
    => IsPrefixUpTo(f, l, LogEndOffset(f))

\* What a follower asks for below its leader's log start is out of range: neither
\* served nor called diverging (the leader no longer knows those epochs).
BelowLogStartIsOutOfRange ==
  \A f \in Brokers :
    MaySendFetch(f) /\ fetchOffset[f] < logStartOffset[leader[f]]
      => FetchAnswer(leader[f], f, FetchRequest(f)).error # "NONE"

(***************************************************************************)
(* Action properties.                                                      *)
(***************************************************************************)

\* From a log that does not change nothing is taken: TLC need not compare its records.
LogChanges(b) == log'[b] # log[b] \/ logStartOffset'[b] # logStartOffset[b]

\* Nobody goes back to an older leader, but by forgetting (a crash).
LeaderEpochsNeverFall ==
  [][/\ registration'.leaderEpoch >= registration.leaderEpoch
     /\ \A b \in Brokers : online[b] /\ online'[b] => leaderEpoch'[b] >= leaderEpoch[b]]_vars

\* What a leader let consumers read it does not take back.
LeaderHighWatermarkNeverFalls ==
  [][\A l \in Brokers :
       ActingLeader(l) /\ ActingLeader(l)' /\ leaderEpoch'[l] = leaderEpoch[l]
         => highWatermark'[l] >= highWatermark[l]]_vars

\* A leader only appends.
LeaderLogIsAppendOnly ==
  [][\A l \in Brokers :
       LogChanges(l) /\ ActingLeader(l) /\ ActingLeader(l)' /\ leaderEpoch'[l] = leaderEpoch[l]
         => \A o \in Offsets : Holds(l, o) =>
              \/ o < logStartOffset'[l]
              \/ o < LogEndOffset(l)' /\ EpochAt(l, o)' = EpochAt(l, o)]_vars

\* What was exposed is never replaced by something else on a replica that may lead.
CommittedNeverOverwritten ==
  [][\A b \in registration.isr \intersect registration'.isr : LogChanges(b) =>
       \A record \in exposed \intersect exposed' :
         HasRecord(b, record) /\ LogEndOffset(b)' > record.offset => HasRecord(b, record)']_vars

\* A member of the ISR never truncates an exposed record. Clean elections, no crash.
NoExposedRecordTruncated ==
  [][\A b \in registration.isr : LogChanges(b) =>
       \A record \in exposed \intersect exposed' :
         HasRecord(b, record) => HasRecord(b, record)']_vars

\* Whom the leader lets into the ISR runs, reaches the leader's high watermark and the offset
\* at which the leader's epoch began (KAFKA-7128), and is the process that the leader means.
IsrAdmission ==
  [][\A l \in Brokers : \A f \in Brokers :
       /\ TrueLeader(l) /\ registration'.leaderEpoch = registration.leaderEpoch
       /\ f \in registration'.isr \ registration.isr
       => /\ online[f]
          /\ LogEndOffset(f) >= highWatermark[l]
          /\ LogEndOffset(f) >= EpochStart(l)
          /\ followerState[l][f].brokerEpoch = brokerEpoch[f]]_vars

\* Every accepted change of the ISR is numbered (KIP-497).
PartitionEpochCountsChanges ==
  [][registration' # registration /\ TwoStepIsr
       => registration'.partitionEpoch = registration.partitionEpoch + 1]_vars

\* Only the leader of the registered epoch changes the ISR without an election. Says nothing
\* where the change takes two steps: there the leader learns of it later.
OnlyTheTrueLeaderChangesTheIsr ==
  [][registration'.isr # registration.isr /\ registration'.leaderEpoch = registration.leaderEpoch
       => \/ TwoStepIsr
          \/ \E l \in Brokers : TrueLeader(l) /\ isr'[l] = registration'.isr]_vars

\* A failed partition stores nothing until its leader epoch changes.
FailedPartitionUnchanged ==
  [][\A b \in Brokers :
       fetchState[b] = "Failed" /\ online'[b] /\ leaderEpoch'[b] = leaderEpoch[b]
         => fetchState'[b] = "Failed" /\ log'[b] = log[b]]_vars

\* A follower that is fenced while it resets its offset gives the partition up: it asked in the
\* epoch that it still has, since its thread holds partitionMapLock meanwhile.
FencedResetFails ==
  [][\A f \in Brokers :
       channel[f].error = "FENCED_LEADER_EPOCH" /\ ProcessListOffsetsResponse(f)
         => fetchState'[f] = "Failed"]_vars

(***************************************************************************)
(* Liveness: with no more failures (no elections, no lost messages), every *)
(* in-sync follower catches up and the high watermark reaches the leader's *)
(* log end. Elections end by themselves where Epochs is finite; a model    *)
(* takes LoseMessage away, and has ISR changes in one step.                *)
(***************************************************************************)
Fairness ==
  /\ \A b \in Brokers, e \in Epochs :
       WF_vars(BecomeLeader(b, e)) /\ WF_vars(BecomeFollower(b, e)) /\ WF_vars(UpdateIsr(b, e))
  /\ \A f \in Brokers :
       /\ WF_vars(TruncateToHighWatermark(f))
       /\ WF_vars(SendEpochRequest(f)) /\ WF_vars(ProcessEpochResponse(f))
       /\ WF_vars(SendFetch(f)) /\ WF_vars(ProcessFetchResponse(f))
       /\ WF_vars(ProcessListOffsetsResponse(f))
  /\ \A l \in Brokers, f \in Brokers :
       /\ WF_vars(HandleEpochRequest(l, f)) /\ WF_vars(HandleFetch(l, f))
       /\ WF_vars(HandleListOffsets(l, f))
       /\ WF_vars(EpochRoundTrip(l, f)) /\ WF_vars(FetchRoundTrip(l, f))
       /\ WF_vars(ListOffsetsRoundTrip(l, f))

FairSpec == Spec /\ Fairness

InSyncReplicasAreCaughtUp ==
  \A l \in Brokers : registration.leader = l =>
    /\ TrueLeader(l)
    /\ \A b \in registration.isr : /\ log[b] = log[l]
                                   /\ highWatermark[b] = LogEndOffset(l)

EventuallyCaughtUp == <>[]InSyncReplicasAreCaughtUp

(***************************************************************************)
(* Situations: states worth reaching, for suites that find shortest paths. *)
(***************************************************************************)

LogEndAfterAnswer(f) ==
  LET a == channel[f]
  IN  CASE a.type = "EpochResponse" -> LogEnd(AfterEpochResponse(f, a))
        [] a.type = "FetchResponse" -> LogEnd(AfterFetchResponse(f, a))
        [] a.type \in {"LatestResponse", "EarliestResponse"} -> LogEnd(AfterListOffsetsResponse(f, a))
        [] OTHER -> LogEndOffset(f)

\* An answer is there that makes a follower cut its log.
SomeoneTruncates == \E f \in Brokers : LogEndAfterAnswer(f) < LogEndOffset(f)

\* A first answer named no common epoch: the follower asks again.
SomeoneAsksAgain ==
  \E f \in Brokers : fetchState[f] = "Truncating" /\ fetchOffset[f] # highWatermark[f]

\* A former leader that wrote nothing still has its epoch in the cache.
EpochWithoutRecords ==
  \E b \in Brokers :
    /\ ~ActingLeader(b) /\ epochCache[b] # <<>>
    /\ epochCache[b][Len(epochCache[b])].start = LogEndOffset(b)

FollowerIsFenced == \E f \in Brokers : channel[f].error = "FENCED_LEADER_EPOCH"

PartitionHasFailed == \E b \in Brokers : fetchState[b] = "Failed"

\* The follower knows a newer epoch than the leader that it asks.
LeaderIsBehind == \E f \in Brokers : channel[f].error = "UNKNOWN_LEADER_EPOCH"

DivergenceIsAnswered ==
  \E f \in Brokers : channel[f].type = "FetchResponse" /\ channel[f].endOffset # NoOffset

OutOfRangeIsAnswered == \E f \in Brokers : channel[f].error = "OFFSET_OUT_OF_RANGE"

LogStartIsAboveFollower ==
  \E f \in Brokers : channel[f].type = "EarliestResponse" /\ channel[f].endOffset > LogEndOffset(f)

\* An answer to a question of an epoch that the follower has left.
AnswerIsStale ==
  \E f \in Brokers :
    /\ channel[f].type \in {"EpochResponse", "FetchResponse"}
    /\ channel[f].currentLeaderEpoch < leaderEpoch[f]

\* ... while it follows the same leader again, at the same offset.
AnswerOutlivesTwoElections ==
  \E f \in Brokers :
    /\ channel[f].type = "FetchResponse" /\ channel[f].leader = leader[f]
    /\ channel[f].currentLeaderEpoch < leaderEpoch[f] - 1
    /\ fetchState[f] = "Fetching" /\ channel[f].fetchOffset = fetchOffset[f]

TwoLeadersAct == \E a, b \in Brokers : a # b /\ ActingLeader(a) /\ ActingLeader(b)

\* A leader that does not know that it is none any longer has appended.
ZombieHasAppended ==
  \E a, b \in Brokers :
    /\ a # b /\ ActingLeader(a) /\ ActingLeader(b) /\ leaderEpoch[a] < leaderEpoch[b]
    /\ LogEndOffset(a) > LogEndOffset(b)

FollowerMayRejoinIsr == \E l, f \in Brokers : TrueLeader(l) /\ MayExpand(l, f)

\* Everybody agrees, on records of two epochs, all exposed.
AllCaughtUpOverTwoEpochs ==
  /\ InSyncReplicasAreCaughtUp /\ registration.isr = Brokers
  /\ Cardinality({record.epoch : record \in exposed}) >= 2

\* A broker that crashed is in the ISR again.
CrashedBrokerIsBackInIsr ==
  \E b \in registration.isr : brokerEpoch[b] > 0 /\ registration.leader \notin {b, NoLeader}

PartitionIsOffline == registration.leader = NoLeader

UncleanLeaderLacksRecords ==
  \E a, b \in Brokers :
    /\ TrueLeader(b) /\ leaderEpoch[b] = guaranteedFrom /\ guaranteedFrom > InitialEpoch
    /\ LogEndOffset(b) < highWatermark[a]

IsrChangeIsRefused == \E l \in Brokers : alterPartition[l].error # "NONE"
=============================================================================
