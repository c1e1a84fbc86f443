------------------------ MODULE WellFoundedInduction -----------------------
(* Induction along relations without infinite descending chains, under the  *)
(* names by which proofs cite it. Proofs are read and not checked here.     *)
EXTENDS NaturalsInduction

IsWellFoundedOn(R, S) == ~ \E f \in [Nat -> S] : \A n \in Nat : <<f[n + 1], f[n]>> \in R

SetLessThan(x, R, S) == {y \in S : <<y, x>> \in R}

THEOREM WFInduction ==
  ASSUME NEW R, NEW S, IsWellFoundedOn(R, S), NEW P(_),
         \A x \in S : (\A y \in SetLessThan(x, R, S) : P(y)) => P(x)
  PROVE  \A x \in S : P(x)
=============================================================================
