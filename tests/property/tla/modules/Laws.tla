-------------------------------- MODULE Laws --------------------------------
(* Laws that hold for all sets a, b, c of integers, elements x, y, function f from strings  *)
(* to integers, key k and sequences s, t of integers. Each is an operator Law_...            *)
EXTENDS Integers, Sequences, FiniteSets, TLC, Bags, SequencesExt, FiniteSetsExt, Functions
VARIABLES a, b, c, x, y, f, k, s, t

Init == FALSE
Next == UNCHANGED <<a, b, c, x, y, f, k, s, t>>

Law_DeMorgan == a \ (b \cup c) = (a \ b) \cap (a \ c)
Law_Distribution == a \cap (b \cup c) = (a \cap b) \cup (a \cap c)
Law_Absorption == a \cup (a \cap b) = a /\ a \cap (a \cup b) = a
Law_Subset == (a \subseteq b) <=> (a \cup b = b)
Law_Powerset == (a \in SUBSET b) <=> a \subseteq b
Law_PowersetSize == Cardinality(SUBSET a) = 2 ^ Cardinality(a)
Law_Union == UNION {a, b, c} = a \cup b \cup c /\ UNION SUBSET a = a
Law_Counting == Cardinality(a \cup b) + Cardinality(a \cap b) = Cardinality(a) + Cardinality(b)
Law_Filter == {z \in a : z \in b} = a \cap b /\ {z \in a : z \notin b} = a \ b
Law_Map == Cardinality({z * 2 + 1 : z \in a}) = Cardinality(a)
Law_Exists == (\E z \in a : z \in b) <=> a \cap b # {}
Law_ForAll == (\A z \in a : z \in b) <=> a \subseteq b
Law_Duality == (\A z \in a : z < x) <=> ~ \E z \in a : z >= x
Law_Product == Cardinality(a \X b) = Cardinality(a) * Cardinality(b)
Law_ProductMember == <<x, y>> \in a \X b <=> x \in a /\ y \in b
Law_TupleQuantifier == {<<u, v>> \in a \X a : u = v} = {<<u, u>> : u \in a}
Law_Choose == a # {} => (CHOOSE z \in a : TRUE) \in a
Law_ChooseSame == a = b => (CHOOSE z \in a \cup {x} : TRUE) = (CHOOSE z \in b \cup {x} : TRUE)
Law_MaxMin == a # {} => /\ \A z \in a : Min(a) <= z /\ z <= Max(a)
                        /\ Max(a) = -Min({-z : z \in a})
Law_Sum == SumSet(a \cup b) + SumSet(a \cap b) = SumSet(a) + SumSet(b)
Law_SetToSeq == ToSet(SetToSeq(a)) = a /\ Len(SetToSeq(a)) = Cardinality(a)
Law_SymDiff == SymDiff(a, b) = (a \cup b) \ (a \cap b)
Law_Interval == (x .. y) = {z \in (x - 2) .. (y + 2) : x <= z /\ z <= y}
Law_Division == y > 0 => x = y * (x \div y) + (x % y) /\ x % y \in 0 .. (y - 1)

Law_ExceptDomain == DOMAIN [f EXCEPT ![k] = x] = DOMAIN f
Law_ExceptValue == k \in DOMAIN f => [f EXCEPT ![k] = x][k] = x
Law_ExceptOther == \A j \in DOMAIN f \ {k} : [f EXCEPT ![k] = x][j] = f[j]
Law_ExceptAt == k \in DOMAIN f => [f EXCEPT ![k] = @ + 1][k] = f[k] + 1
Law_ExceptTwice == [f EXCEPT ![k] = x, ![k] = y] = [f EXCEPT ![k] = y]
Law_Extensional == [j \in DOMAIN f |-> f[j]] = f
Law_FunctionSet == f \in [DOMAIN f -> Range(f)] /\ f \in [DOMAIN f -> Int]
Law_Merge == (k :> x @@ f)[k] = x /\ DOMAIN (f @@ k :> x) = DOMAIN f \cup {k}
Law_MergeLeft == k \in DOMAIN f => (f @@ k :> x) = f
Law_Restrict == Restrict(f, DOMAIN f) = f
Law_Inverse == IsInjective(f) => \A j \in DOMAIN f : AntiFunction(f)[f[j]] = j
Law_Record == [p |-> x, q |-> a].p = x /\ [p |-> x, q |-> y] = ("p" :> x @@ "q" :> y)

Law_Length == Len(s \o t) = Len(s) + Len(t)
Law_Associative == (s \o t) \o s = s \o (t \o s)
Law_HeadTail == s # <<>> => <<Head(s)>> \o Tail(s) = s
Law_FrontLast == s # <<>> => Append(Front(s), Last(s)) = s
Law_Reverse == Reverse(Reverse(s)) = s /\ Reverse(s \o t) = Reverse(t) \o Reverse(s)
Law_SubSeq == SubSeq(s, 1, Len(s)) = s /\ \A i \in 0 .. Len(s) : SubSeq(s, 1, i) \o SubSeq(s, i + 1, Len(s)) = s
Law_SequenceIsFunction == s = [i \in 1 .. Len(s) |-> s[i]] /\ DOMAIN s = 1 .. Len(s)
Law_SelectSeq == ToSet(SelectSeq(s, LAMBDA z : z \in a)) = ToSet(s) \cap a
Law_SortSeq == LET r == SortSeq(s, <) IN
  /\ \A i \in 1 .. (Len(r) - 1) : r[i] <= r[i + 1]
  /\ \A z \in ToSet(s) : Cardinality({i \in DOMAIN s : s[i] = z}) = Cardinality({i \in DOMAIN r : r[i] = z})
Law_Folds == /\ FoldLeft(LAMBDA p, q : p + q, 0, s) = FoldRight(LAMBDA p, q : p + q, s, 0)
             /\ FoldLeft(Append, <<>>, s) = s /\ FoldRight(Cons, s, <<>>) = s
Law_Prefix == IsPrefix(s, s \o t) /\ IsSuffix(t, s \o t) /\ (IsPrefix(s, t) /\ IsPrefix(t, s) => s = t)
Law_Contains == Contains(s, x) <=> x \in ToSet(s)
Law_InsertRemove == \A i \in 1 .. (Len(s) + 1) : RemoveAt(InsertAt(s, i, x), i) = s
Law_Bags == LET u == SetToBag(a) v == SetToBag(b) IN
  /\ (u (+) v) (-) v = u /\ BagToSet(u (+) v) = a \cup b
  /\ BagCardinality(u (+) v) = Cardinality(a) + Cardinality(b)
  /\ CopiesIn(x, u (+) v) = (IF x \in a THEN 1 ELSE 0) + (IF x \in b THEN 1 ELSE 0)

(* No laws: a = {1}, b = {}, x = 1, y = 0, f = [p |-> 1], k = "p", s = <<1>>, t = <<>> breaks them. *)
Wrong_Subset == a \subseteq b
Wrong_Except == [f EXCEPT ![k] = @ + 1] = f
Wrong_Length == Len(s \o t) = Len(t)
=============================================================================
