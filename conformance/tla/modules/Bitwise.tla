------------------------------ MODULE Bitwise ------------------------------
(* Operators on the binary digits of integers: below zero those of the two's complement. *)
LOCAL INSTANCE Integers
LOCAL INSTANCE TLC

LOCAL Combined(Digit(_, _), x, y) ==
  LET RECURSIVE Sum(_, _, _)
      Sum(a, b, place) ==
        IF {a, b} \subseteq {-1, 0} THEN -(Digit(a % 2, b % 2) * place)
        ELSE Digit(a % 2, b % 2) * place + Sum(a \div 2, b \div 2, 2 * place)
  IN  Sum(x, y, 1)

x & y == Combined(LAMBDA a, b : a * b, x, y)
x | y == Combined(LAMBDA a, b : IF a + b > 0 THEN 1 ELSE 0, x, y)
x ^^ y == Combined(LAMBDA a, b : (a + b) % 2, x, y)

(* The other of each digit up to the highest; TLC's own code finds 0 below zero. *)
RECURSIVE Not(_)
Not(a) == IF a <= 0 THEN 0 ELSE (1 - (a % 2)) + 2 * Not(a \div 2)

(* TLC's own code shifts a negative number as one of 32 digits, which has no place in TLA+. *)
shiftR(n, places) ==
  IF Assert(n >= 0, "shiftR of a negative number") THEN n \div (2 ^ places) ELSE n
=============================================================================
