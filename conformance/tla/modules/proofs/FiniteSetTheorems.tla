------------------------- MODULE FiniteSetTheorems -------------------------
(* Facts of finite sets that proofs cite by these names. Proofs are read    *)
(* and not checked here.                                                    *)
EXTENDS FiniteSets, Integers, TLAPS

THEOREM FS_EmptySet == IsFiniteSet({}) /\ Cardinality({}) = 0

THEOREM FS_Singleton == \A x : IsFiniteSet({x}) /\ Cardinality({x}) = 1

THEOREM FS_TwoElements ==
  \A x, y : IsFiniteSet({x, y}) /\ Cardinality({x, y}) = IF x = y THEN 1 ELSE 2

THEOREM FS_CardinalityType == \A S : IsFiniteSet(S) => Cardinality(S) \in Nat

THEOREM FS_NonEmptySet == \A S : IsFiniteSet(S) => (S # {} <=> Cardinality(S) > 0)

THEOREM FS_AddElement ==
  \A S, x : IsFiniteSet(S) =>
    /\ IsFiniteSet(S \cup {x})
    /\ Cardinality(S \cup {x}) = IF x \in S THEN Cardinality(S) ELSE Cardinality(S) + 1

THEOREM FS_RemoveElement ==
  \A S, x : IsFiniteSet(S) =>
    /\ IsFiniteSet(S \ {x})
    /\ Cardinality(S \ {x}) = IF x \in S THEN Cardinality(S) - 1 ELSE Cardinality(S)

THEOREM FS_Subset ==
  \A S, T : IsFiniteSet(S) /\ T \subseteq S =>
    /\ IsFiniteSet(T)
    /\ Cardinality(T) <= Cardinality(S)
    /\ Cardinality(T) = Cardinality(S) => T = S

THEOREM FS_Interval ==
  \A a, b \in Int :
    IsFiniteSet(a .. b) /\ Cardinality(a .. b) = IF a > b THEN 0 ELSE b - a + 1

THEOREM FS_Union ==
  \A S, T : IsFiniteSet(S) /\ IsFiniteSet(T) =>
    /\ IsFiniteSet(S \cup T)
    /\ Cardinality(S \cup T) = Cardinality(S) + Cardinality(T) - Cardinality(S \cap T)

THEOREM FS_Intersection ==
  \A S, T : IsFiniteSet(S) =>
    /\ IsFiniteSet(S \cap T)
    /\ IsFiniteSet(T \cap S)
    /\ Cardinality(S \cap T) <= Cardinality(S)

THEOREM FS_Difference ==
  \A S, T : IsFiniteSet(S) =>
    /\ IsFiniteSet(S \ T)
    /\ Cardinality(S \ T) = Cardinality(S) - Cardinality(S \cap T)

THEOREM FS_UNION ==
  \A S : IsFiniteSet(S) /\ (\A T \in S : IsFiniteSet(T)) => IsFiniteSet(UNION S)

THEOREM FS_SUBSET ==
  \A S : IsFiniteSet(S) =>
    IsFiniteSet(SUBSET S) /\ Cardinality(SUBSET S) = 2 ^ Cardinality(S)

THEOREM FS_Product ==
  \A S, T : IsFiniteSet(S) /\ IsFiniteSet(T) =>
    /\ IsFiniteSet(S \X T)
    /\ Cardinality(S \X T) = Cardinality(S) * Cardinality(T)

THEOREM FS_Image ==
  ASSUME NEW Op(_), NEW S, IsFiniteSet(S)
  PROVE  /\ IsFiniteSet({Op(x) : x \in S})
         /\ Cardinality({Op(x) : x \in S}) <= Cardinality(S)

THEOREM FS_Induction ==
  ASSUME NEW S, IsFiniteSet(S), NEW P(_), P({}),
         ASSUME NEW T, NEW x, IsFiniteSet(T), P(T), x \notin T
         PROVE  P(T \cup {x})
  PROVE  P(S)
=============================================================================
