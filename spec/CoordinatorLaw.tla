---------------------------- MODULE CoordinatorLaw ----------------------------
(***************************************************************************)
(* The law of the coordinator runtime, whatever its records mean: what a   *)
(* coordinator has in memory is what its log loads, at every watermark,    *)
(* after any compaction, and no answer says more than that.                *)
(***************************************************************************)
EXTENDS CoordinatorRuntime

Answers == {"none", "ok", "error", "timeout"}
States == {"NONE", "LOADING", "ACTIVE", "FAILED"}
RuntimeTypeOK ==
  /\ leader \in Brokers \union {NoBroker} /\ epoch \in 0..MaxEpochs /\ deleted \in BOOLEAN
  /\ state \in [Brokers -> States] /\ tenure \in [Brokers -> 0..MaxEpochs]
  /\ \A b \in Brokers :
       /\ hw[b] \in 0..Len(log[b])
       /\ shard[b].joined \subseteq DOMAIN writes
       /\ loads[b] \subseteq 1..MaxEpochs
  /\ DOMAIN answers = DOMAIN writes /\ Range(answers) \subseteq Answers

\* The broker leads, and has not followed since its shard was loaded.
Serves(b) == state[b] = "ACTIVE" /\ Leads(b) /\ listener[b].kind = "LIVE"

\* A group is in memory as its log says, with the records that are on their way.
MemoryIsTheLog ==
  \A b \in Brokers : Serves(b) =>
    shard[b].memory = Replayed(Load(Prefix(log[b], shard[b].written)), shard[b].batch)

\* So it is at each offset that somebody may still read or go back to.
CommittedIsTheLog ==
  \A b \in Brokers : Serves(b) =>
    \A o \in DOMAIN shard[b].snapshots : shard[b].snapshots[o] = Load(Prefix(log[b], o))

\* Describe, list and fetch of committed offsets read at the last committed offset.
ReadAt(b) == shard[b].committed
Read(b) == IF ReadAt(b) \in DOMAIN shard[b].snapshots THEN shard[b].snapshots[ReadAt(b)]
           ELSE shard[b].memory
ReadsAreCommitted ==
  \A b \in Brokers : Serves(b) => Read(b) = Load(Prefix(log[b], shard[b].committed))

\* The broker that leads next loads the same groups, whatever the cleaner did meanwhile.
CompactionIsInvisible ==
  \A b \in Brokers : \A cleaned \in Compactions(log[b]) : Load(cleaned) = Load(log[b])

\* A client that was answered NONE finds its write, and what the answer rests on, for ever.
AnsweredIsCommitted ==
  \A w \in DOMAIN writes :
    answers[w] = "ok" /\ leader # NoBroker => writes[w].seen \subseteq WritesIn(log[leader])

\* An atomic write is in the log as a whole, in one batch, or not at all.
BatchOf(records, i) == {j \in DOMAIN records : \A n \in Min(i, j)..(Max(i, j) - 1) : ~records[n].last}
RecordsIn(records, w) == Cardinality({i \in DOMAIN records : records[i].write = w})
AtomicWrites ==
  \A b \in Brokers : \A i, j \in DOMAIN log[b] :
    log[b][i].write = log[b][j].write /\ writes[log[b][i].write].atomic => j \in BatchOf(log[b], i)
WholeWrites ==
  \A b \in Brokers : \A w \in WritesIn(log[b]) :
    writes[w].atomic => RecordsIn(log[b], w) = writes[w].size

\* Of a write that is not atomic the log may have a part, but not if it was answered NONE.
AnsweredIsWhole ==
  \A w \in DOMAIN writes :
    answers[w] = "ok" /\ leader # NoBroker => RecordsIn(log[leader], w) = writes[w].size

\* What a shard takes for committed its log has committed.
OneTenure == \A b \in Brokers : Serves(b) => shard[b].committed <= hw[b]

Offsets(s) == DOMAIN s.snapshots
CommittedInOrder ==
  \A b \in Brokers :
    /\ shard[b].committed <= shard[b].written
    /\ shard[b].written \in Offsets(shard[b])
    /\ \A o \in Offsets(shard[b]) : o <= shard[b].written

\* No request is forgotten: who waits, waits for an event that somebody has.
NoneIsForgotten ==
  \A w \in DOMAIN writes : answers[w] = "none" => w \in WaitingIn(shard[writes[w].on])

\* A shard serves what its own load has read.
LoadedBeforeServed == \A b \in Brokers : state[b] = "ACTIVE" => tenure[b] \notin loads[b]

\* A broker whose events have run has no shard of a partition that it does not lead.
UnloadedIsGone ==
  \A b \in Brokers : roles[b] = <<>> /\ ~Leads(b) => state[b] = "NONE"

\* An answer is given once.
AnsweredOnce ==
  [][\A w \in DOMAIN answers : answers[w] # "none" => answers'[w] = answers[w]]_vars

\* The committed offset of a tenure does not fall.
CommittedNeverFalls ==
  [][\A b \in Brokers : state[b] = "ACTIVE" /\ state'[b] = "ACTIVE" /\ tenure[b] = tenure'[b]
       => shard'[b].committed >= shard[b].committed]_vars

\* Who appends behind records that it does not know notices it.
OutOfSyncIsNoticed ==
  [][\A b \in Brokers :
       Serves(b) /\ shard[b].written # Len(log[b]) /\ shard'[b].written > shard[b].written
         => state'[b] # "ACTIVE" \/ shard'[b].written = Len(log'[b])]_vars

(***************************************************************************)
(* What must come under FairSpec, where no time-out helps.                 *)
(***************************************************************************)
\* Who waits is answered by a watermark, a failure or an unload.
Waits(w) == w \in DOMAIN answers /\ answers[w] = "none"
WaitingEnds == \A w \in 1..MaxWrites : Waits(w) ~> ~Waits(w)

\* An open batch is flushed though no further write comes (KAFKA-19826).
BatchesAreFlushed == \A b \in Brokers : shard[b].batch # <<>> ~> shard[b].batch = <<>>

(***************************************************************************)
(* Situations worth being in.                                              *)
(***************************************************************************)
OpenBatchBehindUncommitted ==
  \E b \in Brokers : shard[b].batch # <<>> /\ shard[b].committed < shard[b].written
PartIsLeft ==
  \E b \in Brokers : \E w \in WritesIn(log[b]) :
    answers[w] = "error" /\ RecordsIn(log[b], w) < writes[w].size
OutOfSync == \E b \in Brokers : Serves(b) /\ shard[b].written # Len(log[b])
ZombieShard == \E b \in Brokers : state[b] = "ACTIVE" /\ leader # b /\ shard[b].deferred # {}
LoadedAboveWatermark ==
  \E b \in Brokers : Serves(b) /\ shard[b].committed < shard[b].written /\ shard[b].deferred = {}
===============================================================================
