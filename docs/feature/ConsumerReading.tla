--------------------------- MODULE ConsumerReading ----------------------------
(* A consumer that reads record after record, before KIP-392 and after it. *)
EXTENDS Replication

CONSTANT Nearest \* the replica in the consumer's rack; NoLeader: the consumer has none

VARIABLE read    \* the epochs of the records that it has read, by offset

\* Before KIP-392 it reads from a broker that takes itself for the leader.
Serves(b) == IF Nearest \in Brokers /\ online[Nearest] THEN b = Nearest ELSE leader[b] = b

ConsumerReads(b) ==
  /\ online[b] /\ Serves(b)
  /\ Len(read) < highWatermark[b]
  /\ read' = Append(read, log[b][Len(read) + 1])
  /\ UNCHANGED vars

ReadingInit == Init /\ read = <<>>
ReadingNext == (Next /\ UNCHANGED read) \/ \E b \in Brokers : ConsumerReads(b)

ReadsExposedRecordsOnly ==
  \A o \in 1..Len(read) : [offset |-> o - 1, epoch |-> read[o]] \in exposed
===============================================================================
