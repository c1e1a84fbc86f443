---------------------------- MODULE PlusCalQueue ----------------------------
(* What the PlusCal translator writes: procedures with a stack, macros, either, with, assert. *)
EXTENDS Integers, Sequences, TLC
CONSTANTS Producers, Capacity

(*--algorithm PlusCalQueue
variables queue = <<>>, taken = {}, rounds = [p \in Producers |-> 0];

define
  Bounded == Len(queue) <= Capacity
  Total(S) == LET RECURSIVE Sum(_)
                  Sum(T) == IF T = {} THEN 0 ELSE LET e == CHOOSE e \in T : TRUE IN e + Sum(T \ {e})
              IN Sum(S)
end define;

macro put(v) begin
  await Len(queue) < Capacity;
  queue := Append(queue, v);
end macro;

procedure twice(count = 0)
variables left = count;
begin
  Check: if left = 0 then return; end if;
  Step:  left := left - 1;
  Again: call twice(left);
  Back:  return;
end procedure;

fair process producer \in Producers
variables sent = {};
begin
  Produce:
    while rounds[self] < 2 do
      either
        with v \in {1, 2} \ sent do put(v); sent := sent \union {v}; end with;
      or
        skip;
      end either;
      rounds[self] := rounds[self] + 1;
    end while;
end process;

process consumer = 0
variables got = 0;
begin
  Consume:
    while got < 2 do
      await queue # <<>>;
      taken := taken \union {Head(queue)} || queue := Tail(queue);
      got := got + 1;
      Recur: call twice(got - 1);
    end while;
  Finish:
    assert Total(taken) <= 3;
    if got = 2 /\ taken # {} then goto Last; else goto Finish; end if;
  Last:
    print <<"taken", taken>>;
end process;
end algorithm; *)
\* BEGIN TRANSLATION PCal-582467b6d0dc3f4c36d6757247d61a05
VARIABLES queue, taken, rounds, pc, stack

(* define statement *)
Bounded == Len(queue) <= Capacity
Total(S) == LET RECURSIVE Sum(_)
                Sum(T) == IF T = {} THEN 0 ELSE LET e == CHOOSE e \in T : TRUE IN e + Sum(T \ {e})
            IN Sum(S)

VARIABLES count, left, sent, got

vars == << queue, taken, rounds, pc, stack, count, left, sent, got >>

ProcSet == (Producers) \cup {0}

Init == (* Global variables *)
        /\ queue = <<>>
        /\ taken = {}
        /\ rounds = [p \in Producers |-> 0]
        (* Procedure twice *)
        /\ count = [ self \in ProcSet |-> 0]
        /\ left = [ self \in ProcSet |-> count[self]]
        (* Process producer *)
        /\ sent = [self \in Producers |-> {}]
        (* Process consumer *)
        /\ got = 0
        /\ stack = [self \in ProcSet |-> << >>]
        /\ pc = [self \in ProcSet |-> CASE self \in Producers -> "Produce"
                                        [] self = 0 -> "Consume"]

Check(self) == /\ pc[self] = "Check"
               /\ IF left[self] = 0
                     THEN /\ pc' = [pc EXCEPT ![self] = Head(stack[self]).pc]
                          /\ left' = [left EXCEPT ![self] = Head(stack[self]).left]
                          /\ count' = [count EXCEPT ![self] = Head(stack[self]).count]
                          /\ stack' = [stack EXCEPT ![self] = Tail(stack[self])]
                     ELSE /\ pc' = [pc EXCEPT ![self] = "Step"]
                          /\ UNCHANGED << stack, count, left >>
               /\ UNCHANGED << queue, taken, rounds, sent, got >>

Step(self) == /\ pc[self] = "Step"
              /\ left' = [left EXCEPT ![self] = left[self] - 1]
              /\ pc' = [pc EXCEPT ![self] = "Again"]
              /\ UNCHANGED << queue, taken, rounds, stack, count, sent, got >>

Again(self) == /\ pc[self] = "Again"
               /\ /\ count' = [count EXCEPT ![self] = left[self]]
                  /\ stack' = [stack EXCEPT ![self] = << [ procedure |->  "twice",
                                                           pc        |->  "Back",
                                                           left      |->  left[self],
                                                           count     |->  count[self] ] >>
                                                       \o stack[self]]
               /\ left' = [left EXCEPT ![self] = count'[self]]
               /\ pc' = [pc EXCEPT ![self] = "Check"]
               /\ UNCHANGED << queue, taken, rounds, sent, got >>

Back(self) == /\ pc[self] = "Back"
              /\ pc' = [pc EXCEPT ![self] = Head(stack[self]).pc]
              /\ left' = [left EXCEPT ![self] = Head(stack[self]).left]
              /\ count' = [count EXCEPT ![self] = Head(stack[self]).count]
              /\ stack' = [stack EXCEPT ![self] = Tail(stack[self])]
              /\ UNCHANGED << queue, taken, rounds, sent, got >>

twice(self) == Check(self) \/ Step(self) \/ Again(self) \/ Back(self)

Produce(self) == /\ pc[self] = "Produce"
                 /\ IF rounds[self] < 2
                       THEN /\ \/ /\ \E v \in {1, 2} \ sent[self]:
                                       /\ Len(queue) < Capacity
                                       /\ queue' = Append(queue, v)
                                       /\ sent' = [sent EXCEPT ![self] = sent[self] \union {v}]
                               \/ /\ TRUE
                                  /\ UNCHANGED <<queue, sent>>
                            /\ rounds' = [rounds EXCEPT ![self] = rounds[self] + 1]
                            /\ pc' = [pc EXCEPT ![self] = "Produce"]
                       ELSE /\ pc' = [pc EXCEPT ![self] = "Done"]
                            /\ UNCHANGED << queue, rounds, sent >>
                 /\ UNCHANGED << taken, stack, count, left, got >>

producer(self) == Produce(self)

Consume == /\ pc[0] = "Consume"
           /\ IF got < 2
                 THEN /\ queue # <<>>
                      /\ /\ queue' = Tail(queue)
                         /\ taken' = (taken \union {Head(queue)})
                      /\ got' = got + 1
                      /\ pc' = [pc EXCEPT ![0] = "Recur"]
                 ELSE /\ pc' = [pc EXCEPT ![0] = "Finish"]
                      /\ UNCHANGED << queue, taken, got >>
           /\ UNCHANGED << rounds, stack, count, left, sent >>

Recur == /\ pc[0] = "Recur"
         /\ /\ count' = [count EXCEPT ![0] = got - 1]
            /\ stack' = [stack EXCEPT ![0] = << [ procedure |->  "twice",
                                                  pc        |->  "Consume",
                                                  left      |->  left[0],
                                                  count     |->  count[0] ] >>
                                              \o stack[0]]
         /\ left' = [left EXCEPT ![0] = count'[0]]
         /\ pc' = [pc EXCEPT ![0] = "Check"]
         /\ UNCHANGED << queue, taken, rounds, sent, got >>

Finish == /\ pc[0] = "Finish"
          /\ Assert(Total(taken) <= 3, 
                    "Failure of assertion at line 55, column 5.")
          /\ IF got = 2 /\ taken # {}
                THEN /\ pc' = [pc EXCEPT ![0] = "Last"]
                ELSE /\ pc' = [pc EXCEPT ![0] = "Finish"]
          /\ UNCHANGED << queue, taken, rounds, stack, count, left, sent, got >>

Last == /\ pc[0] = "Last"
        /\ PrintT(<<"taken", taken>>)
        /\ pc' = [pc EXCEPT ![0] = "Done"]
        /\ UNCHANGED << queue, taken, rounds, stack, count, left, sent, got >>

consumer == Consume \/ Recur \/ Finish \/ Last

(* Allow infinite stuttering to prevent deadlock on termination. *)
Terminating == /\ \A self \in ProcSet: pc[self] = "Done"
               /\ UNCHANGED vars

Next == consumer
           \/ (\E self \in ProcSet: twice(self))
           \/ (\E self \in Producers: producer(self))
           \/ Terminating

Spec == /\ Init /\ [][Next]_vars
        /\ \A self \in Producers : WF_vars(producer(self))

Termination == <>(\A self \in ProcSet: pc[self] = "Done")

\* END TRANSLATION TLA-a49a902703c1fce1e5324cb70ab736fd
Sane == \A p \in Producers : sent[p] \subseteq {1, 2} /\ (pc[p] = "Done" => rounds[p] = 2)
=============================================================================
