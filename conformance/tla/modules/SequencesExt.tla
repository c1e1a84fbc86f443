---------------------------- MODULE SequencesExt ----------------------------
(***************************************************************************)
(* Operators on sequences under the names of the TLA+ community modules,   *)
(* in definitions of our own that TLC and kconform evaluate alike.         *)
(***************************************************************************)
EXTENDS Sequences
LOCAL INSTANCE FiniteSets
LOCAL INSTANCE Integers
LOCAL INSTANCE TLC

ToSet(s) == {s[i] : i \in DOMAIN s}
ToBag(s) == [x \in ToSet(s) |-> Cardinality({i \in DOMAIN s : s[i] = x})]
IsSorted(s, op(_, _)) == \A i, j \in DOMAIN s : i < j => op(s[i], s[j])
Contains(s, e) == \E i \in DOMAIN s : s[i] = e
Last(s) == s[Len(s)]
Front(s) == SubSeq(s, 1, Len(s) - 1)
Cons(e, s) == <<e>> \o s
Snoc(e, s) == Append(s, e)
Reverse(s) == [i \in 1..Len(s) |-> s[Len(s) - i + 1]]

(* The elements of a finite set, each once, in an order that the set determines. *)
RECURSIVE SetToSeq(_)
SetToSeq(S) ==
  IF S = {} THEN <<>> ELSE LET x == CHOOSE y \in S : TRUE IN <<x>> \o SetToSeq(S \ {x})

(* The same, sorted by op; and all orders. *)
SetToSortSeq(S, op(_, _)) == SortSeq(SetToSeq(S), op)
SetToSeqs(S) ==
  {s \in [1..Cardinality(S) -> S] : \A i, j \in DOMAIN s : s[i] = s[j] => i = j}

SetToAllKPermutations(S) == UNION {SetToSeqs(T) : T \in SUBSET S}

(* Positions: removing and replacing need i \in DOMAIN s; inserting puts e before position i. *)
InsertAt(s, i, e) == SubSeq(s, 1, i - 1) \o <<e>> \o SubSeq(s, i, Len(s))
RemoveAt(s, i) == SubSeq(s, 1, i - 1) \o SubSeq(s, i + 1, Len(s))
ReplaceAt(s, i, e) == [s EXCEPT ![i] = e]

Remove(s, e) == SelectSeq(s, LAMBDA x : x # e)
ReplaceAll(s, old, new) == [i \in DOMAIN s |-> IF s[i] = old THEN new ELSE s[i]]

(* The first, or the last, position whose element satisfies Test; 0 if there is none. *)
SelectInSeq(s, Test(_)) ==
  LET found == {i \in DOMAIN s : Test(s[i])}
  IN IF found = {} THEN 0 ELSE CHOOSE i \in found : \A j \in found : i <= j
SelectLastInSeq(s, Test(_)) ==
  LET found == {i \in DOMAIN s : Test(s[i])}
  IN IF found = {} THEN 0 ELSE CHOOSE i \in found : \A j \in found : i >= j

(* The same of the positions from..to; TLC's own code counts from the beginning of s.        *)
LOCAL Behind(from, i) == IF i = 0 THEN 0 ELSE from - 1 + i
SelectInSubSeq(s, from, to, Test(_)) == Behind(from, SelectInSeq(SubSeq(s, from, to), Test))
SelectLastInSubSeq(s, from, to, Test(_)) ==
  Behind(from, SelectLastInSeq(SubSeq(s, from, to), Test))

RemoveFirstMatch(s, Test(_)) ==
  LET i == SelectInSeq(s, Test) IN IF i = 0 THEN s ELSE RemoveAt(s, i)
RemoveFirst(s, e) ==
  LET i == SelectInSeq(s, LAMBDA x : x = e) IN IF i = 0 THEN s ELSE RemoveAt(s, i)

IsPrefix(s, t) == Len(s) <= Len(t) /\ \A i \in DOMAIN s : s[i] = t[i]
IsStrictPrefix(s, t) == Len(s) < Len(t) /\ IsPrefix(s, t)
IsSuffix(s, t) == IsPrefix(Reverse(s), Reverse(t))
IsStrictSuffix(s, t) == Len(s) < Len(t) /\ IsSuffix(s, t)
Prefixes(s) == {SubSeq(s, 1, n) : n \in 0..Len(s)}
Suffixes(s) == {SubSeq(s, n, Len(s)) : n \in 1..(Len(s) + 1)}
CommonPrefixes(S) ==
  {p \in UNION {Prefixes(s) : s \in S} : \A s \in S : IsPrefix(p, s)}
LongestCommonPrefix(S) ==
  CHOOSE p \in UNION {Prefixes(s) : s \in S} :
    /\ \A s \in S : IsPrefix(p, s)
    /\ \A q \in UNION {Prefixes(s) : s \in S} : (\A s \in S : IsPrefix(q, s)) => Len(q) <= Len(p)

(* FoldLeft starts with the first element, op(rest, element); FoldRight with the last one,   *)
(* op(element, rest). FoldSeq promises no order; TLC's begins with the first, op(element, rest). *)
FoldLeft(op(_, _), base, s) ==
  LET fold[i \in 0..Len(s)] == IF i = 0 THEN base ELSE op(fold[i - 1], s[i]) IN fold[Len(s)]
FoldRight(op(_, _), s, base) ==
  LET fold[i \in 1..(Len(s) + 1)] == IF i > Len(s) THEN base ELSE op(s[i], fold[i + 1])
  IN fold[1]
FoldSeq(op(_, _), base, s) == FoldLeft(LAMBDA rest, e : op(e, rest), base, s)

FoldLeftDomain(op(_, _), base, s) == FoldLeft(op, base, [i \in DOMAIN s |-> i])
FoldRightDomain(op(_, _), s, base) == FoldRight(op, [i \in DOMAIN s |-> i], base)

(* A remainder from 1 to b: positions of a ring. *)
SeqMod(a, b) == IF a % b = 0 THEN b ELSE a % b

(* A sequence of strings gives a string. *)
FlattenSeq(ss) ==
  IF ss = <<>> THEN <<>> ELSE FoldLeft(LAMBDA a, b : a \o b, Head(ss), Tail(ss))
Zip(s, t) == [i \in 1..(IF Len(s) < Len(t) THEN Len(s) ELSE Len(t)) |-> <<s[i], t[i]>>]

(* The sequences over S of length n, and of length at most n. *)
TupleOf(S, n) == [1..n -> S]
SeqOf(S, n) == UNION {[1..m -> S] : m \in 0..n}
BoundedSeq(S, n) == SeqOf(S, n)

(* The contiguous subsequences of s, the empty one included. *)
SubSeqs(s) == {SubSeq(s, i + 1, j) : i, j \in 0..Len(s)}

(* The subsequences of s, with gaps too. *)
AllSubSeqs(s) ==
  {FoldLeftDomain(LAMBDA r, i : IF i \in D THEN Append(r, s[i]) ELSE r, <<>>, s) :
     D \in SUBSET DOMAIN s}

(* Two sequences of one length in turn, each element in a sequence of its own. *)
Interleave(s, t) ==
  CASE Len(s) = Len(t) /\ s = <<>> -> <<<<>>, <<>>>>
    [] Len(s) = Len(t) /\ s # <<>> ->
         [i \in 1..(2 * Len(s)) |->
            IF i % 2 = 1 THEN <<s[(i + 1) \div 2]>> ELSE <<t[i \div 2]>>]

(* Where s stands in t first; r in place of s, which stands at i; of the first s; of each s from *)
(* the left, or before each element if s is empty.                                             *)
IndexFirstSubSeq(s, t) ==
  LET At(i) == SubSeq(t, i, i + Len(s) - 1) = s
  IN CHOOSE i \in 1..(Len(t) - Len(s) + 1) :
       At(i) /\ \A j \in 1..(i - 1) : ~ At(j)
ReplaceSubSeqAt(i, r, s, t) == SubSeq(t, 1, i - 1) \o r \o SubSeq(t, i + Len(s), Len(t))
ReplaceFirstSubSeq(r, s, t) ==
  IF s \in SubSeqs(t) THEN ReplaceSubSeqAt(IndexFirstSubSeq(s, t), r, s, t) ELSE t
ReplaceAllSubSeqs(r, s, t) ==
  LET End(i) == i + Len(s) - 1
      replaced[i \in 1..(Len(t) + 1)] ==
        CASE i > Len(t) -> <<>>
          [] i <= Len(t) /\ s = <<>> -> r \o <<t[i]>> \o replaced[i + 1]
          [] i <= Len(t) /\ s # <<>> /\ End(i) <= Len(t) /\ SubSeq(t, i, End(i)) = s ->
               r \o replaced[End(i) + 1]
          [] OTHER -> <<t[i]>> \o replaced[i + 1]
  IN IF s = t THEN r ELSE replaced[1]
==============================================================================
