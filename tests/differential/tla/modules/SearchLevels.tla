---- MODULE SearchLevels ----
(***************************************************************************)
(* TLCGet("level"): 0 for initial states, then the level of the state that *)
(* is explored, also in what is asked of its successors. In a constraint   *)
(* it bounds the depth of a search.                                        *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSetsExt, TLC

VARIABLES x, y

Level == TLCGet("level")
Of(register) == TLCGet(register)
Twice(register) == 2 * Of(register)

RECURSIVE Raised(_)
Raised(n) == IF n = 0 THEN Level ELSE Raised(n - 1) + n

Init ==
    /\ x \in {0, 4}
    /\ y = Level

Step(k) ==
    /\ x' \in {x + k, x + k + 1}
    /\ y' = LET deep == Twice("level") IN IF deep > 4 THEN Raised(2) ELSE deep

Next ==
    \/ \E k \in 1..(1 + Level): k < 3 /\ Step(k)
    \/ x > Level /\ x' = MapThenSumSet(LAMBDA r: TLCGet(r), {"level"}) /\ UNCHANGED y
    \/ ENABLED (x' = 1 /\ Level > 2) /\ x' = 0 /\ y' = [n \in 1..Level |-> n][Level]

Bound == x < 9 /\ Level < 5
StepBound == Level # 3 \/ x' # x + 1

Deep == Level <= 4 \/ x + y < 30
Grows == [][x' >= x \/ Level \in 1..5]_<<x, y>>
====
