--------------------------- MODULE GroupMembership ---------------------------
(***************************************************************************)
(* Kafka's classic consumer group protocol: what must hold, each with what *)
(* it means to a user. State and actions: GroupProtocol.tla; the           *)
(* coordinator's side: GroupCoordinator.tla.                               *)
(*                                                                         *)
(* Which formula a model checks stands in its manifest; what a formula     *)
(* presupposes is said beside it.                                          *)
(***************************************************************************)
EXTENDS GroupProtocol

(***************************************************************************)
(* Types.                                                                  *)
(***************************************************************************)
GenerationsOrNone == Generations \union {NoGeneration}
ProtocolsOrNone   == Protocols \union {NoProtocol}
Assignments       == [Ids -> SUBSET Partitions]

ChannelMessage ==
  [type : MessageTypes, sentMemberId : IdsOrNone, sentGeneration : GenerationsOrNone,
   abandoned : BOOLEAN, protocols : SUBSET Protocols, assignments : Assignments,
   error : Errors, memberId : IdsOrNone, generation : GenerationsOrNone,
   protocol : ProtocolsOrNone, leader : IdsOrNone, members : SUBSET Ids,
   assignment : SUBSET Partitions, skipAssignment : BOOLEAN]

GroupRecord ==
  [present : BOOLEAN, generation : Generations, protocol : ProtocolsOrNone,
   leader : IdsOrNone, members : SUBSET Ids, staticMembers : [Instances -> IdsOrNone],
   supported : [Ids -> SUBSET Protocols], assignment : Assignments]

TypeOK ==
  /\ groupState \in {"Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"}
  /\ generation \in Generations
  /\ protocolName \in ProtocolsOrNone
  /\ leader \in IdsOrNone
  /\ members \in SUBSET Ids
  /\ pendingMembers \in SUBSET Ids
  /\ staticMembers \in [Instances -> IdsOrNone]
  /\ supported \in [Ids -> SUBSET Protocols]
  /\ awaitingJoin \in SUBSET Ids
  /\ awaitingSync \in SUBSET Ids
  /\ newMembers \in SUBSET Ids
  /\ pendingSync \in SUBSET Ids
  /\ assignment \in Assignments
  /\ joinTimer \in {"None", "Initial", "Rebalance"}
  /\ initialDelays \in 0..InitialDelays
  /\ newMemberAdded \in BOOLEAN
  /\ groupRecord \in GroupRecord
  /\ memberState \in [Members -> {"UNJOINED", "PREPARING_REBALANCE", "COMPLETING_REBALANCE",
                                  "STABLE"}]
  /\ memberGeneration \in [Members -> [generation : GenerationsOrNone, memberId : IdsOrNone,
                                       protocol : ProtocolsOrNone]]
  /\ rejoinNeeded \in [Members -> BOOLEAN]
  /\ needsJoinPrepare \in [Members -> BOOLEAN]
  /\ joinFuture \in [Members -> [state : {"None", "Pending", "Succeeded"},
                                 assignment : SUBSET Partitions]]
  /\ isLeader \in [Members -> BOOLEAN]
  /\ owned \in [Members -> SUBSET Partitions]
  /\ protocols \in [Members -> SUBSET Protocols]
  /\ failed \in [Members -> BOOLEAN]
  /\ channel \in [Members -> ChannelMessage]
  /\ heartbeat \in [Members -> [type : HeartbeatTypes, memberId : IdsOrNone,
                                generation : GenerationsOrNone, error : Errors]]
  /\ idsGiven \in [Members -> 0..Len(MemberIds)]
  /\ failures \in Nat
=============================================================================
