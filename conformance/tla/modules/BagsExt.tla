------------------------------ MODULE BagsExt ------------------------------
(* More operators on bags: functions from elements to how often they occur. *)
LOCAL INSTANCE Bags
LOCAL INSTANCE Integers
LOCAL INSTANCE Folds
LOCAL INSTANCE TLC

BagAdd(B, x) ==
  IF x \in DOMAIN B
  THEN [B EXCEPT ![x] = @ + 1]
  ELSE [e \in DOMAIN B \cup {x} |-> IF e = x THEN 1 ELSE B[e]]

BagRemove(B, x) ==
  IF x \notin DOMAIN B THEN B
  ELSE IF B[x] > 1 THEN [B EXCEPT ![x] = @ - 1]
  ELSE [e \in DOMAIN B \ {x} |-> B[e]]

BagRemoveAll(B, x) == [e \in DOMAIN B \ {x} |-> B[e]]

(* op over f of the elements, each as often as it occurs, one after the other. *)
MapThenFoldBag(op(_, _), base, f(_), choose(_), B) ==
  LET all(x) ==
        LET times[n \in 0..B[x]] == IF n = 0 THEN base ELSE op(times[n - 1], f(x))
        IN times[B[x]]
  IN MapThenFoldSet(op, base, all, choose, DOMAIN B)

(* As TLC's own code (BagsExt.java): element by element, and the second argument of op is always an
   element. MapThenFoldBag, in which the official definition puts it, joins whole results. What is
   no bag, an element that occurs zero times, is an error. *)
FoldBag(op(_, _), base, B) ==
  LET times(acc, x) ==
        LET fold[n \in 0..B[x]] == IF n = 0 THEN acc ELSE op(fold[n - 1], x) IN fold[B[x]]
      RECURSIVE from(_, _)
      from(S, acc) ==
        IF S = {} THEN acc ELSE LET x == CHOOSE x \in S : TRUE IN from(S \ {x}, times(acc, x))
  IN IF Assert(\A x \in DOMAIN B : B[x] > 0, "FoldBag of a function that is no bag")
     THEN from(DOMAIN B, base)
     ELSE base
SumBag(B) == FoldBag(LAMBDA a, b : a + b, 0, B)
ProductBag(B) == FoldBag(LAMBDA a, b : a * b, 1, B)
=============================================================================
