---------------------------- MODULE InstanceWith ----------------------------
EXTENDS Naturals
VARIABLES a, b, pair

Left == INSTANCE ICounter WITH count <- a, Limit <- 2
Right == INSTANCE ICounter WITH count <- b, Limit <- 1 + 2

Init == Left!Zero /\ Right!Zero /\ pair = <<0, 0>>

LeftInc == Left!Inc /\ UNCHANGED b /\ pair' = <<a', b>>
RightStep == Right!Step /\ UNCHANGED a /\ pair' = <<a, b'>>
Both == Left!Reset /\ Right!Reset /\ pair' = <<a', b'>>

Next == LeftInc \/ RightStep \/ Both

InRange == Left!Bounded /\ Right!Bounded
PairAgrees == pair = <<a, b>>
=============================================================================
