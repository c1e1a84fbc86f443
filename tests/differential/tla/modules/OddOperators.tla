------------------------------ MODULE OddOperators ------------------------------
(* Operators as arguments, operators of one's own in infix, prefix and postfix form, labels, and
   the names of parts of expressions and of theorems. *)
EXTENDS Naturals, Sequences, FiniteSets, TLC
VARIABLES x, y
a ++ b == {a, b}
a ^+ == a \cup {9}
a ^# == Cardinality(a)
-. a == 100 - a
a \prec b == a < b
a ?? b == IF a > b THEN a ELSE b
\* operators as arguments
Apply1(F(_), e) == F(e)
Apply2(F(_, _), e, g) == F(e, g)
Prefix == /\ Apply1(SUBSET, {1, 2}) = {{}, {1}, {2}, {1, 2}}
          /\ Apply1(UNION, {{1}, {2}}) = {1, 2}
          /\ Apply1(DOMAIN, <<5, 6>>) = {1, 2}
          /\ Apply1(~, FALSE)
          /\ Apply1(-., 3) = 97
          /\ Apply1(^+, {1}) = {1, 9}
          /\ Apply1(^#, {1, 4}) = 2
Infix == /\ Apply2(+, 1, 2) = 3 /\ Apply2(\cup, {1}, {2}) = {1, 2}
         /\ Apply2(++, 1, 2) = {1, 2} /\ Apply2(\prec, 1, 2) /\ Apply2(??, 1, 2) = 2
         /\ Apply2(\in, 1, {1}) /\ Apply2(=>, FALSE, FALSE) /\ Apply2(\o, <<1>>, <<2>>) = <<1, 2>>
         /\ Apply2(=, 1, 1) /\ Apply2(#, 1, 2) /\ Apply2(:>, 1, 2) = <<2>> /\ Apply2(.., 1, 2) = {1, 2}
         /\ Apply2(\/, TRUE, FALSE) /\ ~Apply2(/\, TRUE, FALSE) /\ Apply2(\subseteq, {}, {1})
         /\ Apply2(@@, 1 :> 2, 2 :> 3) = <<2, 3>> /\ Apply2(\div, 7, 2) = 3 /\ Apply2(%, 7, 2) = 1
Standard == /\ Apply1(Len, <<1>>) = 1 /\ Apply1(Head, <<4>>) = 4 /\ Apply1(Cardinality, {1}) = 1
            /\ Apply2(Append, <<1>>, 2) = <<1, 2>> /\ Apply1(IsFiniteSet, {1})
\* labels and the parts of expressions
Labelled(p) == \A n \in {1, 2} : lab(n) :: LET q == n + p IN in2:: q > p
Parts == /\ Labelled(3)!lab(4) /\ Labelled(3)!lab(4)!:!q = 7 /\ Labelled(1)!(2)!q = 3
Sum == <<1, 2 + 3>>
Selected == Sum!2!1 = 2 /\ Sum!2!<< = 2 /\ Sum!2!>> = 3 /\ Sum!1 = 1
Cond == IF x = 0 THEN y + 1 ELSE {k \in 1..3 : k > y}
Chosen == Cond!2 = y + 1 /\ Cond!3!1 = 1..3 /\ Cond!1
THEOREM Named == x >= 0
THEOREM Two == x >= 0 /\ y = 1
Theorems == Named /\ Two!1 /\ Named!:
\* numbers and strings
Numbers == \b101 = 5 /\ \hFF = 255 /\ \o17 = 15
Strings == "a\"b\\c\n\t" # "" /\ Len("abc") = 3
\* long junction lists, nested
Junction ==
  \/ /\ x = 0
     /\ \/ y = 5
        \/ /\ y = 1
           /\ TRUE
  \/ x = 1 => 
       y = 1
\* nested function and record updates
f == [i \in 1..2, j \in {"a", "b"} |-> [n |-> i, s |-> <<j, j>>]]
Updates == /\ [f EXCEPT ![1, "a"].s[2] = @ \o "c"][1, "a"].s = <<"a", "ac">>
           /\ [f EXCEPT ![1, "a"].n = @ + 1, ![1, "a"].n = @ + 1][1, "a"].n = 3
           /\ f[<<1, "b">>].n = 1
CaseArrow == (CASE x = 0 -> "z" [] x > 0 -> "p") = "z"
Cross == <<1, 2, 3>> \in (1..2) \X (1..2) \X (1..3) /\ <<<<1, 2>>, 3>> \in ((1..2) \X (1..2)) \X (1..3)
Apply3(F(_, _, _), e) == F(e, e, e)
Lambda == Apply3(LAMBDA p, q, r : p + q + r, 2) = 6 /\ Apply2(LAMBDA p, q : p \in q, 1, {1})
UnchangedTest(F(_)) == F(x)
PrimeTest(F(_)) == F(x) = x
Steps == [][UnchangedTest(UNCHANGED) /\ PrimeTest(')]_y
Init == x = 0 /\ y = 1
Next == x' = x /\ y' = y
===============================================================================
