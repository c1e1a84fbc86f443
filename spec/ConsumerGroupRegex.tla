-------------------------- MODULE ConsumerGroupRegex --------------------------
(***************************************************************************)
(* What the coordinator makes of the regular expressions of a group. A     *)
(* heartbeat schedules their resolution on an executor                     *)
(* (GroupMetadataManager.maybeUpdateRegularExpressions); the result comes  *)
(* later, as a write of its own (handleRegularExpressionsResult). All of   *)
(* a group are resolved together, one task at a time.                      *)
(*                                                                         *)
(* before, after: what the sender of a heartbeat was subscribed to, and    *)
(* what it is; members: all of them after the heartbeat.                   *)
(* Not here: expressions that do not compile, topics that a member may not *)
(* see, a resolution that fails, static members that are replaced.         *)
(***************************************************************************)
EXTENDS ConsumerGroupCoordinator

SubscribedBy(members) == UNION {members[m].reads : m \in Members} \intersect Regexes
ResolvedRegexes == {r \in Regexes : resolved[r] # Unresolved}
ExistingNames   == {Topics[t].name : t \in {other \in DOMAIN Topics : topics[other] > NotYet}}

\* Regular expressions that have to be resolved, though none of them may be right now.
Waiting ==
  {r \in SubscribedBy(AllMembers) : resolved[r] = Unresolved \/ regexMisses \/ resultMisses}

(***************************************************************************)
(* A heartbeat.                                                            *)
(***************************************************************************)

\* A regular expression is given up: what is left of the subscription is known (KAFKA-19891).
GivenUpIsKnown == TRUE

\* UpdateRegularExpressionStatus.REGEX_UPDATED_AND_RESOLVED, or the names have changed.
IsKnown(before, after) ==
  LET was == before \intersect Regexes
      is  == after \intersect Regexes
  IN  \/ before \ Regexes # after \ Regexes
      \/ was # is /\ is = {} /\ GivenUpIsKnown
      \/ was # is /\ is # {} /\ is \subseteq ResolvedRegexes

\* A regular expression that is new to the group.
IsNewRegex(before, after) == (after \intersect Regexes) \ (before \union SubscribedBy(AllMembers)) # {}

\* Topics were created since the last resolution.
MissesTopics == regexMisses

\* group.consumer.regex.refresh.interval.ms is over (KAFKA-18961).
IsTooOld == regexAge = "Old"

\* The number of those that are resolved counts what this heartbeat gives up, too.
IsDue(before, members, after) ==
  \/ IsNewRegex(before, after)
  \/ Cardinality(SubscribedBy(members)) # Cardinality(ResolvedRegexes)
  \/ MissesTopics
  \/ IsTooOld

\* One task at a time, and none within ten seconds.
Schedules(before, members, after) ==
  /\ IsNewRegex(before, after) \/ SubscribedBy(AllMembers) # {}
  /\ resolution = "None" /\ regexAge # "Recent"
  /\ SubscribedBy(members) # {} /\ IsDue(before, members, after)

\* A tombstone for what nobody subscribes to any more.
Forget(members) ==
  LET kept == ResolvedRegexes \intersect SubscribedBy(members)
  IN  /\ resolved' = [r \in Regexes |-> IF r \in kept THEN resolved[r] ELSE Unresolved]
      /\ regexAge' = IF kept = {} THEN "None" ELSE regexAge
      /\ regexMisses' = (regexMisses /\ kept # {})

RegexesAfter(before, members, after) ==
  /\ Forget(members)
  /\ IF Schedules(before, members, after)
     THEN resolution' = "Scheduled" /\ asked' = SubscribedBy(members)
     ELSE UNCHANGED <<resolution, asked>>
  /\ UNCHANGED <<matched, resultMisses>>

(***************************************************************************)
(* The result.                                                             *)
(***************************************************************************)

\* What nobody subscribes to any more is left out.
IsStillRead(r) == r \in asked /\ r \in SubscribedBy(AllMembers)
Written == [r \in Regexes |-> IF IsStillRead(r) THEN Matches[r] \intersect matched ELSE resolved[r]]

\* The partitions of the group's topics when this is what its regular expressions match.
ReadWith(known) == PartitionsNamed(NamesWith(known, UNION {subscribed[m] : m \in Members}))

\* The group's topics are others, or other partitions of them are there.
IsAnotherWith(known) ==
  \/ \E r \in Regexes : NamesMatched(known, r) # NamesMatched(resolved, r)
  \/ ReadWith(known) # hashed

EpochAfterResolution == groupEpoch + 1

TakeResult ==
  LET taken == {r \in Regexes : IsStillRead(r)}
  IN  /\ resolved' = Written
      /\ regexAge' = IF taken = {} THEN regexAge ELSE "Recent"
      /\ regexMisses' = IF taken = {} THEN regexMisses ELSE resultMisses
      /\ resolution' = "None" /\ asked' = {} /\ matched' = {} /\ resultMisses' = FALSE

(***************************************************************************)
(* Topics, and bounds.                                                     *)
(***************************************************************************)

\* A topic is created that no resolved regular expression was asked for, nor one that has just run.
IsMissed ==
  /\ regexMisses' = (ResolvedRegexes # {})
  /\ resultMisses' = (resolution = "Run")

\* How many epochs may be due: what is under way, what has to be resolved, a topic that is gone.
One(due) == IF due THEN 1 ELSE 0
ResolutionsDue ==
  One(resolution # "None") + Cardinality({r \in Waiting : r \notin asked})
  + One(UNION {NamesMatched(resolved, r) : r \in Regexes} \ ExistingNames # {})

\* A heartbeat that tells a regular expression leads to two new epochs at most: its own, the result's.
CostOfChange == IF Regexes = {} THEN 1 ELSE 2
===============================================================================
