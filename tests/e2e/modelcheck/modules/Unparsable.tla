---- MODULE Unparsable ----
VARIABLE x
Init == x = 0
Next == x' = y
====
