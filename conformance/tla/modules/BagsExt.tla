------------------------------ MODULE BagsExt ------------------------------
(* More operators on bags: functions from elements to how often they occur. *)
LOCAL INSTANCE Bags
LOCAL INSTANCE Integers

BagAdd(B, x) ==
  IF x \in DOMAIN B
  THEN [B EXCEPT ![x] = @ + 1]
  ELSE [e \in DOMAIN B \cup {x} |-> IF e = x THEN 1 ELSE B[e]]

BagRemove(B, x) ==
  IF x \notin DOMAIN B THEN B
  ELSE IF B[x] > 1 THEN [B EXCEPT ![x] = @ - 1]
  ELSE [e \in DOMAIN B \ {x} |-> B[e]]

BagRemoveAll(B, x) == [e \in DOMAIN B \ {x} |-> B[e]]
=============================================================================
