------------------------------- MODULE Selectors -------------------------------
(* Parts of definitions by label, name and number, through bound names, LETs and instances. *)
EXTENDS Naturals, Sequences
VARIABLES x
Two(F(_, _), a, b) == F(a, b)
Three(F(_, _, _), a, b, c) == F(a, b, c)
Filter(a) == {n \in {1, 2} : a = n}
Mapped(a) == {n + a : n \in {1, 2}}
Inner(a) == {(LET c == a * n IN n + c) : n \in {1, 2}}
InnerOp(a) == {(LET c(y) == a * n + y IN n + c(1)) : n \in {1, 2}}
T1 == Two(Filter!@, 2, 2)
T2 == Two(Mapped!@, 2, 3) = 5
T3 == Two(Inner!@!c, 2, 3) = 6
T4 == Three(InnerOp!@!c, 2, 3, 4) = 10
T5 == Inner(2)!(3)!c = 6 /\ InnerOp(2)!(3)!c(4) = 10
Twice(k) == 2 * k
S == INSTANCE ISelected WITH D <- 4, G <- Twice
P(k) == INSTANCE ISelected WITH D <- k, G <- Twice
T6 == S!Bar(1)!lab(2) /\ S!Bar(1)!lab(2)!:!q(3) = <<1, 2, 3, 4>>
T7 == S!Thm /\ S!Thm!1 /\ S!Thm!2!2 = 8 /\ S!Ok
T8 == P(x + 4)!Bar(1) /\ P(4)!Bar(1)!(2)!q(3) = <<1, 2, 3, 4>>
T9 == Three(S!Bar!lab!:!q, 1, 2, 3) = <<1, 2, 3, 4>>
F6 == [[i \in 1..3 |-> i + 1] EXCEPT ![2] = 1]
T10 == F6!1[3] = 4
Q == \E n \in {1}, <<a, b>> \in {<<2, 3>>} : /\ n = 1
                                            /\ a = 2 /\ b = 3
T11 == Q!(1, 2, 3)!1 /\ Q!(9, 2, 3)!2
Ch == CHOOSE n \in {42} : n = 1
T12 == Ch!(2)!<< = 2 /\ Ch!1!1 = 42
Rec == [a |-> 1, b |-> x]
T13 == Rec!2 = x
Cs == CASE x = 0 -> 1 [] x = 1 -> 2 [] OTHER -> 3
T14 == Cs!1!1 /\ Cs!1!2 = 1 /\ Cs!3!2 = 3
Act == x' = x /\ TRUE
T15 == [][Act!1]_x
T16 == ENABLED Act!1
A2 == [Act]_x
Init == x = 0
Next == Act!1 /\ Act!2
================================================================================
