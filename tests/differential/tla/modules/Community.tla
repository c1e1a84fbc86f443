------------------------------ MODULE Community ------------------------------
EXTENDS Integers, Sequences, FiniteSets, SequencesExt, FiniteSetsExt, Functions
VARIABLES seq, f

Init == seq = <<>> /\ f = [i \in {"a", "b"} |-> 0]
Grow(n) == Len(seq) < 3 /\ ~ Contains(seq, n) /\ seq' = Append(seq, n) /\ UNCHANGED f
Turn == seq # Reverse(seq) /\ seq' = Reverse(seq) /\ UNCHANGED f
Cut == seq # <<>> /\ seq' = Front(seq) /\ f' = [f EXCEPT !["a"] = Last(seq)]
Place == \E i \in DOMAIN seq : seq' = ReplaceAt(RemoveAt(InsertAt(seq, i, 9), i), i, Max(ToSet(seq))) /\ f' = f
Total == f' = [f EXCEPT !["b"] = FoldSeq(+, 0, seq)] /\ UNCHANGED seq
Sets == seq # <<>> /\ seq' = SetToSeq(Range(seq)) /\ UNCHANGED f
Next == Turn \/ Cut \/ Place \/ Total \/ Sets \/ \E n \in 1..3 : Grow(n)

Folds == FoldLeft(LAMBDA acc, x : acc - x, 10, <<1, 2>>) = 7 /\ FoldRight(LAMBDA x, acc : x - acc, <<5, 3>>, 1) = 3
SetFolds == FoldSet(+, 0, {1, 2, 3}) = 6 /\ Sum({4, 5}) = 9 /\ Product({2, 5}) = 10
PrefixLaws == IsPrefix(seq, seq \o <<1>>) /\ IsStrictPrefix(seq, seq \o <<1>>) /\ ~ IsStrictPrefix(seq, seq) /\ IsSuffix(<<>>, seq)
Injective == IsInjective(seq) = (Cardinality(ToSet(seq)) = Len(seq))
Subsets == kSubset(2, {1, 2, 3}) = {{1, 2}, {1, 3}, {2, 3}} /\ Quantify(1..4, LAMBDA i : i > 2) = 2
Maps == /\ Restrict(f, {"a"}) = [i \in {"a"} |-> f["a"]]
        /\ Inverse([i \in {1, 2} |-> i + 5], {1, 2}, {6, 7}) = [j \in {6, 7} |-> j - 5]
        /\ Cardinality(Injection({1, 2}, {1, 2, 3})) = 6 /\ Cardinality(Surjection({1, 2, 3}, {1, 2})) = 6
        /\ Cardinality(Bijection({1, 2}, {3, 4})) = 2 /\ ExistsBijection({1}, {2})
=============================================================================
