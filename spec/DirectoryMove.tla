---------------------------- MODULE DirectoryMove ----------------------------
(***************************************************************************)
(* A replica moves to another log directory of its broker (KIP-113): what  *)
(* must hold, each with what it means to a user. Below it:                 *)
(* DirectoryMoveThread (the steps), ReplicationLog (logs as values).       *)
(***************************************************************************)
EXTENDS DirectoryMoveThread

(***************************************************************************)
(* Types.                                                                  *)
(***************************************************************************)
Caches == UNION {[1..n -> [epoch : Epochs, start : Offsets]] : n \in 0..Cardinality(Epochs)}
Copies == {"current", "future"}

Messages ==
  [type : MessageTypes, currentLeaderEpoch : EpochsOrNone, fetchOffset : Offsets,
   lastEpoch : EpochsOrNone, error : Errors, epoch : EpochsOrNone, endOffset : OffsetsOrNone,
   records : {<<>>} \union {<<e>> : e \in Epochs}, highWatermark : Offsets, overtaken : BOOLEAN]

TypeOK ==
  /\ role \in {"leader", "follower", "offline"}
  /\ leaderEpoch \in EpochsOrNone
  /\ directory \in Directories
  /\ moving \in BOOLEAN
  /\ log \in [Copies -> UNION {[1..n -> Epochs] : n \in Offsets}]
  /\ highWatermark \in [Copies -> Offsets]
  /\ epochCache \in [Copies -> Caches]
  /\ failed \in SUBSET Directories
  /\ fetchState \in {"None", "Truncating", "Fetching", "Failed"}
  /\ fetchOffset \in Offsets
  /\ fetchEpoch \in EpochsOrNone
  /\ channel \in Messages
  /\ unadded \in OffsetsOrNone
  /\ unmarked \in OffsetsOrNone
  /\ lastEpoch \in Epochs
  /\ committed \in Offsets
  /\ seen \in SUBSET Epochs
  /\ settled \in BOOLEAN

(***************************************************************************)
(* Invariants.                                                             *)
(***************************************************************************)

\* Consumers are never sent to an offset that the replica does not have.
HighWatermarkWithinLog ==
  /\ current.hw <= LogEnd(current)
  /\ future.hw <= LogEnd(future)

\* A copy's epoch cache, by which truncation decides, is that of its records; but for a last
\* entry at the log end, of an epoch in which nothing is written (yet).
CacheMatches(r) ==
  LET whole == CacheOf(r)
      n     == Len(r.cache)
  IN  \/ r.cache = whole
      \/ /\ n = Len(whole) + 1
         /\ SubSeq(r.cache, 1, n - 1) = whole
         /\ r.cache[n].start = LogEnd(r)

EpochCacheMatchesLog == CacheMatches(current) /\ CacheMatches(future)

\* What was committed is in the log that serves.
CommittedIsServed == LogEnd(current) >= committed

\* Nothing is left of a move that is over.
NothingIsLeft == ~moving => future = EmptyLog /\ fetchState = "None"

\* The thread asks for what comes after the future log: nothing skipped, nothing twice.
FetchOffsetIsLogEnd == fetchState = "Fetching" => fetchOffset = LogEnd(future)

\* Once the thread is past truncation, and knows of all that happened, the future log is a prefix
\* of the current one; else the swap would put another log in its place.
KnowsAll == fetchEpoch = leaderEpoch /\ unadded = NoOffset /\ unmarked = NoOffset

FutureIsPrefix ==
  fetchState = "Fetching" /\ KnowsAll =>
    /\ Len(future.log) <= Len(current.log)
    /\ future.log = SubSeq(current.log, 1, Len(future.log))

\* A move that failed is taken up again by the registration that is under way (KAFKA-9654).
FailureIsTemporary == fetchState = "Failed" => unadded # NoOffset

(***************************************************************************)
(* Action properties.                                                      *)
(***************************************************************************)
Swaps == directory' # directory

\* No record that was committed is lost or replaced.
CommittedNeverLost ==
  [][/\ committed <= Len(log'["current"])
     /\ SubSeq(log'["current"], 1, committed) = SubSeq(current.log, 1, committed)]_vars

\* What a swap puts in place of the log is the same log, record by record.
SwapIsEqual == [][Swaps => log'["current"] = log["current"]]_vars

\* Consumers see nothing of a swap.
SwapKeepsHighWatermark ==
  [][Swaps /\ leaderEpoch' = leaderEpoch
       => highWatermark'["current"] = highWatermark["current"]]_vars

\* Followers that ask where an epoch with records ends are answered as before the swap...
Answer(r, asked) == EndOffsetFor(r.cache, asked, LogEnd(r))

SwapKeepsEpochsOfRecords ==
  [][Swaps => \A i \in 1..Len(current.log) :
       Answer(current', current.log[i]) = Answer(current, current.log[i])]_vars

\* ... and whatever they ask. Not so in Kafka: see the model of it.
SwapKeepsEpochs ==
  [][Swaps /\ leaderEpoch' = leaderEpoch
       => \A e \in Epochs : Answer(current', e) = Answer(current, e)]_vars

(***************************************************************************)
(* What must come, if the broker's threads go on.                          *)
(***************************************************************************)
\* If nothing more happens to the log, the move ends.
Quiet == lastEpoch = Greatest /\ LogEnd(current) = LongestLog

MoveEnds == <>[](Quiet /\ failed = {}) => []<>(~moving)

(***************************************************************************)
(* Situations that a suite shall show.                                     *)
(***************************************************************************)
SwapWhileRegistering  == unadded # NoOffset /\ ~moving
FencedWhileRegistering == fetchState = "Failed"
FutureIsLonger        == moving /\ LogEnd(future) > LogEnd(current)
FutureHasDiverged     ==
  moving /\ \E i \in 1..Len(future.log) :
    i <= Len(current.log) /\ future.log[i] # current.log[i]
=============================================================================
