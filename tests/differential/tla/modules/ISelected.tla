------------------------------- MODULE ISelected -------------------------------
EXTENDS Naturals
CONSTANT D, G(_)
Bar(a) == \A n \in {1} : lab(n) :: LET q(m) == <<a, n, m, D>> IN q(n)[1] < 2
THEOREM Thm == D = 4 /\ G(D) = 8
ASSUME Ok == D > 0
================================================================================
