---------------------------- MODULE LabelsOfCalls ----------------------------
(* Operators whose arguments are not constant give their name and are not entered. *)
EXTENDS Naturals
VARIABLE x
Init == x = 0
Foo(n) == x' = n + 1 /\ x < 3
Bar == Foo(x)
Two(a, b) == x' = a + b /\ x < 3
Set(v) == x' = v /\ x < 3
Inc(n) == n + 1
Apply(A(_), v) == Set(v + 1) \/ A(v)
Use(f(_), v) == Set(f(v)) \/ (x' = f(v) + 5 /\ x < 3)
Seven == 7
Next == \/ Foo(x)
        \/ \E s \in {x} : Two(s, 10)
        \/ Bar /\ TRUE
        \/ Apply(Set, 20)
        \/ Apply(LAMBDA v : x' = v /\ x < 3, 30)
        \/ LET Q == x' = 40 /\ x < 3 IN Q
        \/ LET R(n) == x' = n /\ x < 3 IN R(50)
        \/ LET S(n) == x' = n /\ x < 3 IN S(60 + x)
        \/ IF x = 0 THEN Set(70) ELSE FALSE
        \/ Two(80 + x, 1)
        \/ Set(Seven)
        \/ (x = 0 /\ Set(90))
        \/ Use(Inc, 100)
        \/ Use(LAMBDA n : n + 2, 110)
        \/ Use(LAMBDA n : n + x, 120)
        \/ \E m \in {1, 2} : LET T(n) == x' = n + m /\ x < 3 IN T(130) \/ T(140 + x)
==============================================================================
