-------------------------- MODULE FunctionTheorems -------------------------
(* Facts of functions that proofs cite by these names. Proofs are read and  *)
(* not checked here.                                                        *)
EXTENDS Functions, Integers, FiniteSets, TLAPS

THEOREM Fun_RangeProperties ==
  \A S, T : \A f \in [S -> T] : Range(f) \subseteq T /\ (\A y \in Range(f) : \E x \in S : f[x] = y)

THEOREM Fun_ExistsSurjSubset ==
  \A S, T : T \subseteq S /\ T # {} => ExistsSurjection(S, T)

THEOREM Fun_ExistsBijReflexive == \A S : ExistsBijection(S, S)
=============================================================================
