------------------------------- MODULE IWithin ------------------------------
LOCAL INSTANCE Naturals
Missing == CHOOSE n : n \notin Nat
Within == {n \in Nat : n # 1}
=============================================================================
