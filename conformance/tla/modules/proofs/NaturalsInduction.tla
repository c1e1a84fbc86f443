------------------------- MODULE NaturalsInduction -------------------------
(* Induction over the natural numbers, under the names by which proofs cite *)
(* it. Proofs are read and not checked here.                                *)
EXTENDS Integers, TLAPS

THEOREM NatInduction ==
  ASSUME NEW P(_), P(0), \A n \in Nat : P(n) => P(n + 1)
  PROVE  \A n \in Nat : P(n)

THEOREM GeneralNatInduction ==
  ASSUME NEW P(_), \A n \in Nat : (\A m \in 0 .. (n - 1) : P(m)) => P(n)
  PROVE  \A n \in Nat : P(n)

NatInductiveDefHypothesis(f, first, Following(_, _)) ==
  f = CHOOSE g : g = [n \in Nat |-> IF n = 0 THEN first ELSE Following(g[n - 1], n)]

NatInductiveDefConclusion(f, first, Following(_, _)) ==
  f = [n \in Nat |-> IF n = 0 THEN first ELSE Following(f[n - 1], n)]

THEOREM RecursiveFcnOfNat ==
  ASSUME NEW Value(_, _),
         \A n \in Nat : \A g, h :
           (\A i \in 0 .. (n - 1) : g[i] = h[i]) => Value(g, n) = Value(h, n)
  PROVE  LET f[n \in Nat] == Value(f, n) IN f = [n \in Nat |-> Value(f, n)]

THEOREM NatInductiveDef ==
  ASSUME NEW Following(_, _), NEW f, NEW first, NatInductiveDefHypothesis(f, first, Following)
  PROVE  NatInductiveDefConclusion(f, first, Following)
=============================================================================
