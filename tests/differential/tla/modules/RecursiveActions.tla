--------------------------- MODULE RecursiveActions ---------------------------
(* Assignments inside recursive operators, through their parameters, and in \A over several names. *)
EXTENDS Integers
VARIABLES x, y, z

vars == <<x, y, z>>
xNext == x'

RECURSIVE Choose(_)
Choose(n) == IF n = 0 THEN x' = 0 /\ y' \in 0..1
             ELSE IF n = 2 THEN z' \in {n, 0} /\ Choose(1)
             ELSE Choose(n - 1)
RECURSIVE Down(_)
Down(n) == \/ n = 0 /\ y' = 1 /\ x' = 2
           \/ n > 0 /\ x' = n - 1 /\ Down(n - 1)
           \/ n > 1 /\ y' = n /\ Down(n - 2)
RECURSIVE Even(_), Odd(_)
Even(n) == IF n = 0 THEN x' = 0 ELSE Odd(n - 1)
Odd(n) == IF n = 0 THEN x' = 1 ELSE Even(n - 1)
RECURSIVE Set(_, _, _)
Set(p, e, n) == IF n = 0 THEN p = e ELSE p \in {n, e} /\ Set(p, e, n - 1)
RECURSIVE Times(_, _, _)
Times(Op(_), a, n) == IF n = 0 THEN Op(a) ELSE Times(Op, (a + 1) % 3, n - 1)
RECURSIVE NotBelow(_)
NotBelow(n) == n = 0 \/ (x' # n - 1 /\ NotBelow(n - 1))
RECURSIVE Sums(_)
Sums(n) == IF n = 0 THEN (x + y)' = x' + y' ELSE Sums(n - 1)
Kept(v) == v' = v
RECURSIVE Guard(_)
Guard(n) == n = 0 \/ n # 1 \/ (n > 0 /\ Guard(n - 1))

Chosen == Choose(2)
Lowered == Down(x) /\ UNCHANGED z
Parity == Even(x) /\ UNCHANGED <<y, z>>
Through == Set(x', y, 2) /\ Set(z', 1, 1) /\ y' = y
Applied == Times(LAMBDA v : x' = v /\ y' \in {v, 0}, z, 2) /\ UNCHANGED z
After == xNext = 2 /\ UNCHANGED <<y, z>> /\ NotBelow(y)
Summed == x' = 1 /\ y' \in 0..2 /\ z' = z /\ Sums(1)
KeptAll == Times(LAMBDA v : Kept(x), 0, 2) /\ y' = 1 /\ z' = 0
Inside == LET RECURSIVE L(_)
              L(n) == IF n = 0 THEN y' = 2 ELSE (x' = n \/ x' = 0) /\ L(n - 1)
          IN x < 2 /\ L(x + 1) /\ z' = 1
Several == \A i \in 0..1, j \in {x} : x' \in {i, 1} /\ (i = 0 \/ y' = j) /\ z' \in 0..1
Pairs == \A <<i, j>> \in {<<0, x>>, <<1, y>>} :
            (i = 0 => x' = j) /\ (i = 1 => y' = j /\ z' = 0)
Guarded == x < 2 /\ Guard(x) /\ x' = x /\ y' = 0 /\ z' = z
MayChoose == ENABLED (Choose(2) /\ x' = y) /\ x' = 0 /\ UNCHANGED <<y, z>>

Init == x = 0 /\ y = 1 /\ z \in {0, 2}
Next == Chosen \/ Lowered \/ Parity \/ Through \/ Applied \/ After \/ Summed \/ KeptAll \/ Inside
        \/ Several \/ Pairs \/ Guarded \/ MayChoose
Small == x \in 0..2 /\ y \in 0..2 /\ z \in 0..2
Steps == [][Next]_vars
SumsStay == [][(Sums(1) /\ NotBelow(0)) \/ (NotBelow(y) /\ z' = z)]_vars
=============================================================================
