---------------------------- MODULE FiniteSetsExt ----------------------------
(***************************************************************************)
(* Operators on finite sets under the names of the TLA+ community modules, *)
(* in definitions of our own that TLC and kconform evaluate alike.         *)
(***************************************************************************)
EXTENDS FiniteSets, Functions, Folds
LOCAL INSTANCE Integers

(* Op over the elements, op(element, rest), ending in base; in no particular order: op should *)
(* be associative and commutative.                                                             *)
RECURSIVE FoldSet(_, _, _)
FoldSet(op(_, _), base, S) ==
  IF S = {} THEN base
  ELSE LET x == CHOOSE y \in S : TRUE IN op(x, FoldSet(op, base, S \ {x}))

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

(* The functions that choose one element of each set in S. *)
Choices(S) == {f \in [S -> UNION S] : \A T \in S : f[T] \in T}
==============================================================================
