-------------------------- MODULE ConsumerPositions --------------------------
(***************************************************************************)
(* A consumer's positions: what must hold, each with what it means to a    *)
(* user. Below it: ConsumerPositionSteps (the steps).                      *)
(***************************************************************************)
EXTENDS ConsumerPositionSteps

Offsets     == 0..MaxLog
EpochOrNone == 0..MaxEpoch
Strategies  == {"none", "earliest", "latest"}
Failures    == {"none", "LOG_TRUNCATION", "TOPIC_AUTHORIZATION_FAILED"}
AllIn(sequence, values) == \A i \in 1..Len(sequence) : sequence[i] \in values

TypeOK ==
  /\ tps \in [Partitions ->
       [state : {"NONE", "INITIALIZING", "AWAIT_RESET", "AWAIT_VALIDATION", "FETCHING"},
        offset : Offsets \union {NoOffset}, epoch : EpochOrNone, leader : EpochOrNone,
        known : BOOLEAN, strategy : Strategies, retry : {"now", "backoff", "sent"},
        paused : BOOLEAN]]
  /\ metadata \in [Partitions -> [epoch : 1..MaxEpoch, seen : 1..MaxEpoch]]
  /\ outdated \in BOOLEAN /\ refresh \in BOOLEAN
  /\ lookup \in [asked : SUBSET Partitions, answer : {"none", "sent", "done", "failed"}]
  /\ AllIn(sent, [kind : {"list", "epochs", "fetch"}, partition : Partitions,
                  offset : Offsets \union {NoOffset}, epoch : EpochOrNone, leader : 1..MaxEpoch,
                  strategy : Strategies])
  /\ failure \in [reset : Failures, validation : Failures]
  /\ consumed \in [Partitions -> Offsets \union {NoOffset}]
  /\ AllIn(result.records, [partition : Partitions, offset : Offsets])
  /\ leaderEpoch \in [Partitions -> 1..MaxEpoch]

(***************************************************************************)
(* Invariants.                                                             *)
(***************************************************************************)
\* There is a position iff it is fetched from or asked about (KAFKA-10123), and a strategy iff one is
\* looked for.
PositionFitsState ==
  \A p \in Partitions :
    /\ HasPosition(tps[p]) <=> tps[p].offset # NoOffset
    /\ tps[p].state = "AWAIT_RESET" <=> tps[p].strategy # "none"

\* Who reads from the present leader reads on in the log that it has read: a log that was truncated
\* below the position is not read on silently (KIP-320).
ReadsOnInItsLog ==
  \A p \in Partitions :
    LET tp == tps[p]
    IN  tp.state = "FETCHING" /\ tp.known /\ tp.leader = leaderEpoch[p] /\ tp.epoch # NoEpoch
          => tp.offset <= Len(log[p]) /\ (tp.offset > 0 => log[p][tp.offset] <= tp.epoch)

\* No position is committed that the leader may not have.
CommitsWhatIsValid ==
  \A p \in Partitions : consumed[p] # NoOffset => tps[p].state = "FETCHING"

\* A request is fenced by the leader epoch for which the position was validated.
AsksKnownLeader == \A i \in 1..Len(sent) : sent[i].leader # NoEpoch

\* Who waits for an answer has asked. A truncation that the application must decide about is asked
\* about again when the time of the request is over.
HasAsked(p) == \E i \in 1..Len(sent) : sent[i].partition = p
IsUndecided(tp) == Policy = "none" /\ tp.state = "AWAIT_VALIDATION"
WaitsForAnswer ==
  \A p \in Partitions : tps[p].retry = "sent" => HasAsked(p) \/ IsUndecided(tps[p])

(***************************************************************************)
(* Action properties.                                                      *)
(***************************************************************************)
RecordsOf(p) == SelectSeq(result'.records, LAMBDA record : record.partition = p)

\* Records come without a gap and once: they begin at the position, which goes behind them.
HandsOutInOrder ==
  [][\A p \in Partitions :
       LET records == RecordsOf(p)
       IN  records # <<>> =>
             /\ \A i \in 1..Len(records) : records[i].offset = tps'[p].offset - Len(records) + i - 1
             /\ HasPosition(tps[p]) => records[1].offset = tps[p].offset]_vars

\* ... and it moves over nothing else (KAFKA-5075).
MovesOverHandedOut ==
  [][result' # NoResult => \A p \in Partitions :
       tps[p].state = "FETCHING" /\ tps'[p].state = "FETCHING" /\ tps'[p].offset > tps[p].offset
         => Len(RecordsOf(p)) = tps'[p].offset - tps[p].offset]_vars

\* Nothing comes from a partition that is paused, not owned, or not validated.
HandsOutWhatIsFetchable ==
  [][\A p \in Partitions : RecordsOf(p) # <<>> => IsFetchable(tps'[p])]_vars

\* The application moves a position.
BySeek == \E p \in Partitions :
  \/ \E target \in SeekTargets : Seek(p, target)
  \/ \E strategy \in {"earliest", "latest"} : SeekToEdge(p, strategy)

\* What was fetched of a paused partition is there when it goes on (KAFKA-7548).
BufferOf(p, entries) == SelectSeq(entries, LAMBDA entry : entry.partition = p)
Fits(p) ==
  LET entries == BufferOf(p, buffer)
  IN  entries # <<>> /\ entries[1].error = "NONE" /\ tps[p].state = "FETCHING"
        /\ entries[1].offset = tps[p].offset

PausedKeeps ==
  [][\A p \in Partitions :
       Poll /\ tps[p].paused /\ tps'[p].paused /\ Fits(p) /\ ~outdated
         => BufferOf(p, buffer') # <<>>]_vars

\* The position after a reset is what the last call asked for (KAFKA-7703), by what the log is then.
ResetIsChosen ==
  [][\A p \in Partitions :
       tps[p].state = "AWAIT_RESET" /\ HasPosition(tps'[p]) /\ ~BySeek
         => tps'[p].offset = IF tps[p].strategy = "earliest" THEN 0 ELSE Len(log[p])]_vars

\* The answer to a question about another position changes nothing (KAFKA-8429).
AnswerIsAskedFor ==
  [][\A i \in 1..Len(sent) :
       LET p == sent[i].partition
           isAsked == tps[p].offset = sent[i].offset /\ tps[p].epoch = sent[i].epoch
       IN  Answer(i) /\ sent[i].kind = "epochs" /\ sent[i].leader = leaderEpoch[p]
             => tps'[p] = tps[p] \/ (isAsked /\ tps[p].leader = sent[i].leader)]_vars

\* A committed position is where a partition begins; the policy is for those without one.
BeginsAtCommitted ==
  [][\A p \in Partitions :
       tps[p].state = "INITIALIZING" /\ tps'[p].state \notin {"NONE", "INITIALIZING"} /\ ~BySeek
         => /\ p \in lookup.asked /\ lookup.answer = "done"
            /\ IF Committed[p].offset = NoOffset THEN tps'[p].state = "AWAIT_RESET"
               ELSE tps'[p].offset >= Committed[p].offset]_vars

\* A leader that is new to a position is asked about it before anything else comes from there.
NewLeaderIsAsked ==
  [][\A p \in Partitions :
       tps[p].state = "FETCHING" /\ tps'[p].state = "FETCHING" /\ tps[p].leader # tps'[p].leader
         => tps[p].epoch = NoEpoch \/ BySeek]_vars

\* After a poll each partition has what it needs, or somebody was asked, or metadata is.
PollAsks ==
  [][result'.error = "none" /\ Poll =>
       \A p \in Partitions :
         /\ tps[p].state = "AWAIT_VALIDATION" \/ (tps[p].state = "AWAIT_RESET" /\ lookup'.answer = "none")
              => tps'[p].state # tps[p].state \/ tps'[p].retry # "now" \/ refresh'
                   \/ lookup.answer = "failed"
         /\ tps'[p].state = "INITIALIZING" => lookup'.answer # "none" \/ lookup.answer = "failed"
         /\ IsFetchable(tps'[p]) /\ ~IsBuffered([buffer |-> buffer'], p)
              => refresh' \/ HasAsked(p)']_vars

\* Metadata that has named a wrong leader is asked for anew (KAFKA-9535).
FencedAsksForMetadata ==
  [][\A i \in 1..Len(sent) :
       Answer(i) /\ sent[i].kind # "fetch" /\ sent[i].leader # leaderEpoch[sent[i].partition]
         => refresh']_vars

\* Without a policy a position that is gone is the application's to decide: it stays.
NoneMovesNothing ==
  [][Policy = "none" => \A p \in Partitions :
       HasPosition(tps[p]) /\ HasPosition(tps'[p]) /\ ~BySeek => tps'[p].offset >= tps[p].offset]_vars

\* What an answer found that no retry cures is raised, once.
FailureIsRaised ==
  [][/\ failure.validation # "none" /\ Poll => result'.error = failure.validation
     /\ failure.validation # "none" /\ failure'.validation = "none"
          => result'.error = failure.validation
     /\ failure.reset # "none" /\ failure'.reset = "none" => result'.error = failure.reset]_vars

(***************************************************************************)
(* Situations that a suite shall show.                                     *)
(***************************************************************************)
ResetTwice == \E i, j \in 1..Len(sent) :
  sent[i].kind = "list" /\ sent[j].kind = "list" /\ sent[i].strategy # sent[j].strategy
LeaderUnknown == \E p \in Partitions : tps[p].state = "AWAIT_VALIDATION" /\ ~tps[p].known
PausedWithData == \E p \in Partitions : tps[p].paused /\ IsBuffered([buffer |-> buffer], p)
AskedAboutOther == lookup.answer = "sent" /\ lookup.asked # Initializing([tps |-> tps])
=============================================================================
