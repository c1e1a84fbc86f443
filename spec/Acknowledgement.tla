--------------------------- MODULE Acknowledgement ----------------------------
(***************************************************************************)
(* What producers and consumers of one partition are promised: what must   *)
(* hold of the requests that wait at a leader, each with what it means to  *)
(* a user. Below it: ReplicationRequests (the steps), Replication.         *)
(***************************************************************************)
EXTENDS ReplicationRequests

(***************************************************************************)
(* Types.                                                                  *)
(***************************************************************************)
Records == [offset : Offsets, epoch : Epochs]

RequestsTypeOK ==
  /\ TypeOK
  /\ produce \in [Producers -> [leader : BrokersOrNone, acks : Acks \union {"none"},
                                answers : 0..2, error : ProduceErrors,
                                baseOffset : OffsetsOrNone]]
  /\ parked \in [Brokers -> BOOLEAN]
  /\ consumer \in [Consumers -> [leader : BrokersOrNone, offset : Offsets,
                                 error : Errors \union {"NETWORK_EXCEPTION"},
                                 highWatermark : OffsetsOrNone]]
  /\ checks \in [Brokers -> {"None", "Handler", "StateChange"}]
  /\ produced \in [Producers -> Records \union {NoRecord}]
  /\ consumed \in [Consumers -> SUBSET Records]
  /\ told \in [Consumers -> [Epochs -> OffsetsOrNone]]

(***************************************************************************)
(* Producers.                                                              *)
(***************************************************************************)
IsAcknowledged(p, acks) ==
  produce[p].acks = acks /\ produce[p].answers > 0 /\ produce[p].error = "NONE"

IsLost(record) == \E l \in Brokers : TrueLeader(l) /\ ~HasRecord(l, record)

\* A produce with acks=all that was answered NONE is in the log of every true leader from
\* then on. As for exposed records, the promise ends with an unclean election, and where no
\* member of the ISR runs any longer.
AcknowledgedNeverLost ==
  \A p \in Producers :
    IsAcknowledged(p, "all") /\ produced[p].epoch >= guaranteedFrom => ~IsLost(produced[p])

\* With acks=1 that is not promised: a model shows how such a record goes.
AcknowledgedByOneNeverLost ==
  \A p \in Producers : IsAcknowledged(p, "1") => ~IsLost(produced[p])

\* What is acknowledged can be read: it lay below the leader's high watermark.
AcknowledgedIsExposed ==
  \A p \in Producers :
    IsAcknowledged(p, "all") /\ produced[p].epoch >= guaranteedFrom => produced[p] \in exposed

\* One produce, one answer; and an answer tells where the record lies if one was appended.
ProduceIsAnsweredOnce ==
  \A p \in Producers :
    /\ produce[p].answers <= 1
    /\ produce[p].answers = 1 => produce[p].baseOffset = produced[p].offset

\* A refused produce has left nothing behind: whoever sends it again makes no duplicate.
RefusedIsNotAppended ==
  \A p \in Producers :
    produce[p].error \in {"NOT_ENOUGH_REPLICAS", "UNKNOWN_TOPIC_OR_PARTITION"} =>
      produced[p] = NoRecord

\* A produce with acks=all is answered NONE only while the leader counts min.insync.replicas
\* members, and so many brokers have the record. Presupposes that none loses its log's tail.
MinInsyncIsKept ==
  [][\A p \in Producers :
       IsAcknowledged(p, "all")' /\ ~IsAcknowledged(p, "all") =>
         LET l == produce'[p].leader
         IN  /\ Cardinality(MaximalIsr(isr[l], pendingIsr[l])) >= MinInsync
             /\ \A m \in isr[l] : HasRecord(m, produced[p])']_allVars

\* While fewer are in sync, nothing new is taken with acks=all.
NothingIsTakenBelowMinInsync ==
  [][\A p \in Producers :
       produced'[p] # produced[p] /\ produce'[p].acks = "all" =>
         \E l \in Brokers : ActingLeader(l) /\ Cardinality(isr[l]) >= MinInsync
                            /\ LogEndOffset(l)' > LogEndOffset(l)]_allVars

\* An answer is the last word.
AnswerIsFinal ==
  [][\A p \in Producers : produce[p].answers > 0 => produce'[p] = produce[p]]_allVars

(***************************************************************************)
(* Who waits, and who wakes them.                                          *)
(***************************************************************************)

\* A produce whose fate is decided, or that waits at a broker that no longer leads, will be
\* looked at: its answer does not have to wait for its time-out.
DecidedProduceIsLookedAt ==
  \A l \in Brokers : \A p \in Producers :
    ProduceWaitsAt(p, l) /\ DecisionAt(l, p) # "WAIT" => checks[l] # "None"

\* A leader that was elected again in a newer epoch does not look at what waits (Kafka does so
\* only where the high watermark rises): its fetches of the epoch before are answered at the
\* next event, or when their time has passed.
IsOfFormerEpoch(f) == channel[f].currentLeaderEpoch < leaderEpoch[channel[f].leader]

\* A parked fetch for which there is something, data, a divergence or a fence, will be looked at.
ParkedFetchIsLookedAt ==
  \A l \in Brokers : \A f \in Brokers :
    FetchIsReady(l, f) => checks[l] # "None" \/ (leader[l] = l /\ IsOfFormerEpoch(f))

ParkedConsumerIsLookedAt ==
  \A l \in Brokers : \A c \in Consumers : ConsumerIsReady(l, c) => checks[l] # "None"

\* Only what was asked waits, at a broker that runs.
ParkedIsAsked ==
  \A f \in Brokers : parked[f] => channel[f].type = "FetchRequest" /\ online[channel[f].leader]

\* A fetch acknowledges when it arrives, not when it is answered: else a produce would wait
\* for a fetch that waits for the next produce.
ParkedFetchHasAcknowledged ==
  \A f \in Brokers :
    LET l == channel[f].leader
    IN  parked[f] /\ leader[l] = l /\ ~IsOfFormerEpoch(f) /\ followerState[l][f].brokerEpoch =
          channel[f].brokerEpoch => followerState[l][f].logEndOffset >= channel[f].fetchOffset

\* A follower's parked fetch is never overtaken by a divergence: a leader only appends, and a
\* new epoch fences it.
ParkedFetchDoesNotDiverge ==
  \A f \in Brokers : parked[f] => AnswerNow(f).endOffset = NoOffset

(***************************************************************************)
(* Consumers.                                                              *)
(***************************************************************************)

\* Consumers read what is committed, and nothing else. Presupposes clean elections, no crash.
ConsumedIsExposed == \A c \in Consumers : consumed[c] \subseteq exposed

\* Whatever a consumer has read, it is not told otherwise: one record at each offset.
OneConsumedRecordPerOffset ==
  \A c, d \in Consumers : \A r \in consumed[c] : \A s \in consumed[d] :
    r.offset = s.offset => r = s

\* What a consumer can read never goes back within a leader epoch.
ReadsNeverGoBack ==
  [][\A c \in Consumers : \A e \in Epochs : told'[c][e] >= told[c][e]]_allVars

\* A consumer waits at its position only, and no answer skips or repeats a record.
ConsumerPositionIsExact ==
  \A c \in Consumers : consumer[c].offset = Cardinality({r.offset : r \in consumed[c]})

(***************************************************************************)
(* Liveness. Time passes, and who has to look does look.                   *)
(***************************************************************************)
RequestsFairness ==
  /\ \A l \in Brokers : WF_allVars(CheckWaiting(l))
  /\ \A f \in Brokers : WF_allVars(ExpireFetch(f))
  /\ \A p \in Producers : WF_allVars(ExpireProduce(p))
  /\ \A c \in Consumers : WF_allVars(ExpireConsumerFetch(c))

FairRequestsSpec == RequestsSpec /\ RequestsFairness

\* By data, by a fence, or by its time.
ParkedFetchIsAnswered == \A f \in Brokers : parked[f] ~> ~parked[f]

\* Or its broker has gone.
ProduceIsAnswered == \A p \in Producers : MayExpire(produce[p]) ~> ~MayExpire(produce[p])

ConsumerIsAnswered ==
  \A c \in Consumers : consumer[c].leader # NoLeader ~> consumer[c].leader = NoLeader

\* Without time: the brokers' own steps acknowledge what is produced, once nothing fails.
RequestsProgress ==
  /\ \A l \in Brokers : WF_allVars(CheckWaiting(l))
  /\ \A b \in Brokers, e \in Epochs : WF_allVars(Leads(b, e)) /\ WF_allVars(Follows(b, e))
  /\ \A f \in Brokers :
       /\ WF_allVars(Truncates(f)) /\ WF_allVars(SendsFetch(f)) /\ WF_allVars(ProcessesFetch(f))
       /\ WF_allVars(SendsEpochRequest(f)) /\ WF_allVars(ProcessesEpochs(f))
       /\ WF_allVars(ExpireFetch(f))
  /\ \A l \in Brokers, f \in Brokers :
       /\ WF_allVars(AnswersFetch(l, f)) /\ WF_allVars(ParkFetch(l, f))
       /\ WF_allVars(HandlesEpochRequest(l, f))

ProgressingRequestsSpec == RequestsSpec /\ RequestsProgress

(***************************************************************************)
(* Situations.                                                             *)
(***************************************************************************)
ProduceWaits == \E p \in Producers : MayExpire(produce[p])

ProduceIsDecidedLate ==
  \E l \in Brokers, p \in Producers : ProduceWaitsAt(p, l) /\ DecisionAt(l, p) # "WAIT"

\* The record is committed, and its producer will hear NOT_LEADER_OR_FOLLOWER.
CommittedButNotAcknowledged ==
  \E l \in Brokers, p \in Producers :
    ProduceWaitsAt(p, l) /\ leader[l] # l /\ produced[p] \in exposed

TimedOutAndCommitted ==
  \E p \in Producers : produce[p].error = "REQUEST_TIMED_OUT" /\ produced[p] \in exposed

TooFewAfterAppend == \E p \in Producers : produce[p].error = "NOT_ENOUGH_REPLICAS_AFTER_APPEND"

TooFewBeforeAppend == \E p \in Producers : produce[p].error = "NOT_ENOUGH_REPLICAS"

ZombieHasAcknowledgedOne ==
  \E p \in Producers : IsAcknowledged(p, "1") /\ IsLost(produced[p])

FetchIsParkedAtFormerLeader == \E f \in Brokers : parked[f] /\ leader[channel[f].leader] # channel[f].leader

FetchIsParkedOverElection ==
  \E f \in Brokers : parked[f] /\ leader[channel[f].leader] = channel[f].leader /\ IsOfFormerEpoch(f)

ConsumerWaits == \E c \in Consumers : consumer[c].leader # NoLeader

ConsumerIsAhead ==
  \E l \in Brokers, c \in Consumers : TrueLeader(l) /\ consumer[c].offset > highWatermark[l]
==============================================================================
