-------------------------------- MODULE Cases --------------------------------
EXTENDS Naturals
VARIABLES phase, n

Successor == CASE phase = "red" -> "green"
               [] phase = "green" /\ n < 2 -> "yellow"
               [] phase = "green" -> "off"
               [] OTHER -> "red"
Init == phase = "red" /\ n = 0
Light == phase' = Successor /\ n' = IF phase = "yellow" THEN n + 1 ELSE n
Tick == CASE phase = "off" -> n' = 0 /\ phase' = "red"
          [] phase = "red" /\ n > 0 -> n' = n - 1 /\ UNCHANGED phase
          [] OTHER -> n' \in {n, 2} /\ phase' = phase
Maybe == IF n = 2 THEN phase' = "off" /\ n' = 1 ELSE n' = n /\ phase' \in {"red", "off"}
Next == n < 4 /\ (Light \/ Tick \/ Maybe)
Known == phase \in {"red", "green", "yellow", "off"}
=============================================================================
