------------------------- MODULE ActionPropertyFails -------------------------
EXTENDS Naturals
VARIABLES epoch, hw

Init == epoch = 0 /\ hw = 0
Elect == epoch < 3 /\ epoch' = epoch + 1 /\ UNCHANGED hw
Advance == hw < 3 /\ hw' = hw + 1 /\ UNCHANGED epoch
Lose == epoch = 2 /\ hw > 1 /\ hw' = hw - 1 /\ epoch' = epoch
Next == Elect \/ Advance \/ Lose
Range == epoch \in 0..3 /\ hw \in 0..3
EpochsRise == [][epoch' >= epoch]_epoch
HighWatermarkRises == [][hw' >= hw]_<<epoch, hw>>
=============================================================================
