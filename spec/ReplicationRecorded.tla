------------------------- MODULE ReplicationRecorded ---------------------------
(***************************************************************************)
(* What is asked of recorded brokers: Replication, fetches that are read   *)
(* late, and registrations that are applied late.                          *)
(***************************************************************************)
EXTENDS ReplicationLateFetches, ReplicationLateRegistrations

RecordedNext == LateNext \/ ApplyLate

RecordedSpec == Init /\ [][RecordedNext]_vars
================================================================================
