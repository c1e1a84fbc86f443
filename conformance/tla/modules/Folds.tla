-------------------------------- MODULE Folds --------------------------------
(* The fold that the others of the community modules are made of.             *)

(* op(f(x), rest) over the elements x of S, in the order in which `choose`    *)
(* takes them, ending in base.                                                *)
MapThenFoldSet(op(_, _), base, f(_), choose(_), S) ==
  LET fold[T \in SUBSET S] ==
        IF T = {} THEN base ELSE LET x == choose(T) IN op(f(x), fold[T \ {x}])
  IN fold[S]
==============================================================================
