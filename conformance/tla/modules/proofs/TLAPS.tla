------------------------------- MODULE TLAPS -------------------------------
(* The names that a module with proofs takes from TLAPS, the TLA+ proof     *)
(* system: provers and tactics. Proofs are read and not checked here, so    *)
(* each of them just means TRUE.                                            *)

SMT == TRUE
SMTT(seconds) == TRUE
CVC3 == TRUE
CVC3T(seconds) == TRUE
CVC4 == TRUE
CVC4T(seconds) == TRUE
CVC5 == TRUE
CVC5T(seconds) == TRUE
Z3 == TRUE
Z3T(seconds) == TRUE
Zipper == TRUE
ZipperT(seconds) == TRUE
Zenon == TRUE
ZenonT(seconds) == TRUE
SlowZenon == TRUE
SlowerZenon == TRUE
VerySlowZenon == TRUE
SlowestZenon == TRUE
Isa == TRUE
IsaT(seconds) == TRUE
IsaM(tactic) == TRUE
IsaMT(tactic, seconds) == TRUE
Auto == TRUE
AutoBlast == TRUE
Blast == TRUE
Force == TRUE
LS4 == TRUE
PTL == TRUE
PropositionalTemporalLogic == TRUE
SimpleArithmetic == TRUE
SimplifyAndSolve == TRUE
Simplification == TRUE
AllProvers == TRUE
AllProversT(seconds) == TRUE
AllSMT == TRUE
AllSMTT(seconds) == TRUE
AllIsa == TRUE
AllIsaT(seconds) == TRUE
ExpandENABLED == TRUE
ExpandCdot == TRUE
AutoUSE == TRUE
Lambdify == TRUE
ENABLEDaxioms == TRUE
ENABLEDrules == TRUE
ENABLEDrewrites == TRUE
LevelComparison == TRUE
Trivial == TRUE

THEOREM SetExtensionality == \A S, T : (\A x : x \in S <=> x \in T) => S = T
THEOREM NoSetContainsEverything == \A S : \E x : x \notin S
THEOREM IsaWithSetExtensionality == \A S, T : (\A x : x \in S <=> x \in T) => S = T
=============================================================================
