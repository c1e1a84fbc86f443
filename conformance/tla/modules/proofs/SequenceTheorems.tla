-------------------------- MODULE SequenceTheorems -------------------------
(* Facts of sequences that proofs cite by these names. Proofs are read and  *)
(* not checked here.                                                        *)
EXTENDS Sequences, Integers, TLAPS

THEOREM LenProperties ==
  \A S : \A seq \in Seq(S) :
    Len(seq) \in Nat /\ DOMAIN seq = 1 .. Len(seq) /\ seq \in [1 .. Len(seq) -> S]

THEOREM EmptySeq == \A S : <<>> \in Seq(S) /\ (\A seq \in Seq(S) : seq = <<>> <=> Len(seq) = 0)

THEOREM AppendProperties ==
  \A S : \A seq \in Seq(S), x \in S :
    /\ Append(seq, x) \in Seq(S)
    /\ Len(Append(seq, x)) = Len(seq) + 1
    /\ \A i \in 1 .. Len(seq) : Append(seq, x)[i] = seq[i]
    /\ Append(seq, x)[Len(seq) + 1] = x

THEOREM HeadTailProperties ==
  \A S : \A seq \in Seq(S) : seq # <<>> =>
    /\ Head(seq) \in S
    /\ Tail(seq) \in Seq(S)
    /\ Len(Tail(seq)) = Len(seq) - 1
    /\ \A i \in 1 .. Len(Tail(seq)) : Tail(seq)[i] = seq[i + 1]

THEOREM ConcatProperties ==
  \A S : \A s1, s2 \in Seq(S) :
    s1 \o s2 \in Seq(S) /\ Len(s1 \o s2) = Len(s1) + Len(s2)
=============================================================================
