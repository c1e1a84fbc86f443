------------------------------ MODULE Bitwise ------------------------------
(* Operators on the binary digits of natural numbers.                       *)
LOCAL INSTANCE Integers

LOCAL Combined(Digit(_, _), x, y) ==
  LET RECURSIVE Sum(_, _, _)
      Sum(a, b, place) ==
        IF a = 0 /\ b = 0 THEN 0
        ELSE Digit(a % 2, b % 2) * place + Sum(a \div 2, b \div 2, 2 * place)
  IN  Sum(x, y, 1)

x & y == Combined(LAMBDA a, b : a * b, x, y)
x | y == Combined(LAMBDA a, b : IF a + b > 0 THEN 1 ELSE 0, x, y)
x ^^ y == Combined(LAMBDA a, b : (a + b) % 2, x, y)

Not(a) == -a - 1

shiftR(n, places) == n \div (2 ^ places)
=============================================================================
