---------------------------- MODULE FiniteSetsExt ----------------------------
(***************************************************************************)
(* Operators on finite sets under the names of the TLA+ community modules, *)
(* in definitions of our own that TLC and kconform evaluate alike.         *)
(***************************************************************************)
EXTENDS FiniteSets, Functions, Folds
LOCAL INSTANCE Integers

(* Op over the elements, op(element, rest), from base on. No order is promised; TLC's own code *)
(* begins with the element that CHOOSE takes.                                                  *)
RECURSIVE FoldSet(_, _, _)
FoldSet(op(_, _), base, S) ==
  IF S = {} THEN base
  ELSE LET x == CHOOSE y \in S : TRUE IN FoldSet(op, op(x, base), S \ {x})

ReduceSet(op(_, _), S, base) == FoldSet(op, base, S)

SumSet(S) == FoldSet(LAMBDA a, b : a + b, 0, S)
ProductSet(S) == FoldSet(LAMBDA a, b : a * b, 1, S)
Sum(S) == SumSet(S)
Product(S) == ProductSet(S)

(* The sum of f over the elements. *)
MapThenSumSet(f(_), S) == FoldSet(LAMBDA x, rest : f(x) + rest, 0, S)

Max(S) == CHOOSE x \in S : \A y \in S : x >= y
Min(S) == CHOOSE x \in S : \A y \in S : x <= y

(* How many elements satisfy P. *)
Quantify(S, P(_)) == Cardinality({x \in S : P(x)})

(* The subsets of S with k elements. *)
kSubset(k, S) == {T \in SUBSET S : Cardinality(T) = k}

SymDiff(S, T) == (S \ T) \cup (T \ S)
FlattenSet(S) == UNION S
ChooseUnique(S, P(_)) == CHOOSE x \in S : P(x) /\ \A y \in S : P(y) => y = x

(* What may be chosen if one element is taken of each set in S. *)
Choices(S) == {Range(f) : f \in {g \in [S -> UNION S] : \A T \in S : g[T] \in T}}
==============================================================================
