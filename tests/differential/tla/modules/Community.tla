------------------------------ MODULE Community ------------------------------
EXTENDS Integers, Sequences, FiniteSets, SequencesExt, FiniteSetsExt, Functions, BagsExt, UndirectedGraphs, TLC, TLCExt
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
MoreFolds == /\ FoldLeftDomain(LAMBDA acc, i : acc * i, 1, <<7, 7, 7>>) = 6
             /\ FoldRightDomain(LAMBDA i, acc : i - acc, <<7, 7>>, 5) = 1 - (2 - 5)
             /\ ReduceSet(+, {1, 2}, 4) = 7 /\ SumFunction(<<4, 5, 6>>) = 15 /\ SumFunctionOnSet(<<4, 5, 6>>, {1, 2}) = 9
             /\ Pointwise(<<1, 2>>, <<3, 5>>, +) = <<4, 7>>
             /\ SumBag(1 :> 2 @@ 2 :> 1 @@ 3 :> 3) = 13 /\ ProductBag(2 :> 3 @@ 5 :> 1) = 40
             /\ FoldBag(LAMBDA acc, x : Append(acc, x), <<>>, 1 :> 2 @@ 3 :> 1) = <<1, 1, 3>>
             /\ MapThenFoldBag(+, 0, LAMBDA x : 1, LAMBDA S : CHOOSE x \in S : TRUE, 1 :> 2 @@ 3 :> 3) = 5
Parts == /\ AllSubSeqs(<<1, 2, 3>>) = {<<>>, <<1>>, <<2>>, <<3>>, <<1, 2>>, <<1, 3>>, <<2, 3>>, <<1, 2, 3>>}
         /\ Suffixes(<<1, 2>>) = {<<>>, <<2>>, <<1, 2>>} /\ CommonPrefixes({<<1, 2>>, <<1, 3>>}) = {<<>>, <<1>>}
         /\ Interleave(<<1, 2>>, <<3, 4>>) = <<<<1>>, <<3>>, <<2>>, <<4>>>> /\ Interleave(<<>>, <<>>) = <<<<>>, <<>>>>
         /\ IndexFirstSubSeq(<<2, 3>>, <<1, 2, 3, 2, 3>>) = 2 /\ ReplaceSubSeqAt(2, <<9>>, <<2, 3>>, <<1, 2, 3, 4>>) = <<1, 9, 4>>
         /\ ReplaceFirstSubSeq(<<9>>, <<2>>, <<1, 2, 2>>) = <<1, 9, 2>> /\ ReplaceAllSubSeqs(<<9>>, <<2>>, <<1, 2, 2>>) = <<1, 9, 9>>
         /\ ReplaceAllSubSeqs(<<9>>, <<1, 1>>, <<1, 1, 1>>) = <<9, 1>> /\ ReplaceAllSubSeqs(<<0>>, <<>>, <<1, 2>>) = <<0, 1, 0, 2>>
         /\ RemoveFirstMatch(<<1, 2, 3>>, LAMBDA i : i > 1) = <<1, 3>> /\ SeqMod(4, 2) = 2 /\ SeqMod(5, 2) = 1
         /\ SelectInSubSeq(<<1, 2, 3>>, 2, 3, LAMBDA i : i = 3) = 3 /\ SelectLastInSubSeq(<<2, 2, 3>>, 1, 2, LAMBDA i : i = 2) = 2
         /\ ToBag(<<1, 1, 2>>) = (1 :> 2 @@ 2 :> 1) /\ IsSorted(<<1, 2, 2>>, <=) /\ ~ IsSorted(<<2, 1>>, <=)
         /\ SetToAllKPermutations({1, 2}) = {<<>>, <<1>>, <<2>>, <<1, 2>>, <<2, 1>>}
Graphs == LET G == [node |-> {1, 2, 3}, edge |-> {{1, 2}}]
          IN <<1, 2, 1>> \in Path(G) /\ <<1, 3>> \notin Path(G) /\ G \in UndirectedGraphs({1, 2, 3}) /\ Cardinality(UndirectedGraphs({1, 2})) = 8
Extension == AssertEq(1 + 1, 2) /\ TLCDefer(1 = 2) /\ TLCNoOp(3) = 3 /\ PickSuccessor(TRUE)
=============================================================================
