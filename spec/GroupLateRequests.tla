--------------------------- MODULE GroupLateRequests ---------------------------
(***************************************************************************)
(* JoinGroups that are handled late. A coordinator whose process stands    *)
(* still (a stopped or starved machine) still has its members' requests in *)
(* its sockets. A member gives its JoinGroup up after some time and sends  *)
(* another, on another connection; when the coordinator goes on, it finds  *)
(* both, in either order. A consumer that is closed while its JoinGroup    *)
(* waits gives it up, too, and sends LeaveGroup.                           *)
(*                                                                         *)
(* In GroupMembership.tla a process has one of these requests under way.   *)
(* Here it may have two: its own, and the last JoinGroup that it gave up.  *)
(***************************************************************************)
EXTENDS GroupMembership

CONSTANT GivenUp  \* by process, where channel has the JoinGroup that it gave up: no process's name

\* A model puts them in the place of Connections.
AllConnections == Members \union {GivenUp[p] : p \in Members}

Abandoned(m) == [m EXCEPT !.abandoned = TRUE]

\* NetworkClient.handleTimedOutRequests, or a broken connection (AbstractCoordinator's
\* JoinGroupResponseHandler sees DisconnectException); or the consumer is closed, or its process has
\* ended. Of a JoinGroup that was given up before, nothing is known any longer: it is lost.
GiveUpJoinGroup(p) ==
  /\ LateRequests /\ channel[p].type = "JoinGroupRequest"
  /\ SetMember(p, AfterDisconnect(p))
  /\ channel' = [channel EXCEPT ![p] = NoMessage, ![GivenUp[p]] = Abandoned(channel[p])]
  /\ Failure
  /\ MemberStep /\ UNCHANGED heartbeat

\* GroupCoordinator.handleJoinGroup. Nobody waits for the answer: KafkaChannel finds the
\* connection closed.
HandleLateJoinGroup(p) ==
  /\ channel[GivenUp[p]].type = "JoinGroupRequest"
  /\ JoinGroupArrives(p, GivenUp[p])

\* A member has one callback (MemberMetadata.awaitingJoinCallback), that of the JoinGroup that came
\* last: the one that waited under its id is never answered. A model puts this in the place of
\* StillHeld.
HeldUnlessReplaced(m, id) ==
  IF m.type = "JoinGroupParked" /\ m.memberId = id THEN [m EXCEPT !.memberId = NoMemberId] ELSE m

LateNext ==
  \/ Next
  \/ \E p \in Members : GiveUpJoinGroup(p)
  \/ \E p \in Members : HandleLateJoinGroup(p)

LateSpec == Init /\ [][LateNext]_vars

\* Who waits will be answered, unless a JoinGroup that it gave up has taken its place.
\* WaitingRequestIsHeld is more than that, and does not hold here: see the model of it.
WaitingRequestIsHeldOrReplaced ==
  \A p \in Members :
    /\ channel[p].type = "JoinGroupParked" =>
         channel[p].memberId \in awaitingJoin \union {NoMemberId}
    /\ channel[p].type = "SyncGroupParked" => channel[p].memberId \in awaitingSync

\* Who is told that another process has its instance id shares it with one. Presupposes that nobody
\* restarts. Not so here: a JoinGroup without a member id takes the place of whoever has it, be it
\* the next one of the same process (GroupCoordinator.updateStaticMemberAndRebalance).
FencedByAnotherProcess ==
  \A p \in Members :
    "FENCED_INSTANCE_ID" \in {channel[p].error, heartbeat[p].error} =>
      \E q \in Members \ {p} : InstanceOf[q] = InstanceOf[p]

\* A process has joined again, and the coordinator has yet to see that it did so before.
TwoJoinsUnderWay ==
  \E p \in Members :
    channel[GivenUp[p]].type = "JoinGroupRequest" /\ joinFuture[p].state = "Pending"
================================================================================
