package kconform;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.IntFunction;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.server.common.MetadataVersion;

/** One broker under test: its process of now, its fetchers, its round trip, its AlterPartition. */
final class Broker {
  /** A step that this broker cannot take. */
  static final class Refused extends RuntimeException {
    Refused(String why) {
      super(why);
    }
  }

  /** An ISR change as the leader sends it. */
  record Proposal(int leaderEpoch, int partitionEpoch, List<List<Long>> isr) {}

  private final BrokerProcess.Host host;
  private final List<Integer> brokers;
  private final MetadataVersion version;
  private Map<Integer, Fetcher> fetchers = new LinkedHashMap<>();
  private Object proposed;
  private CompletableFuture<Object> change;
  BrokerProcess process;
  boolean online;
  Trip trip;

  Broker(int id, File directory, List<Integer> brokers, MetadataVersion version) {
    this.host = new BrokerProcess.Host(id, directory);
    this.brokers = brokers;
    this.version = version;
  }

  // ---- life --------------------------------------------------------------------------------

  /** A new process on an empty disk. */
  void reset() throws IOException, InterruptedException {
    end();
    clear(host.directory.toPath());
    start(0);
    online = true;
  }

  /** Ends what runs, if anything does. */
  void end() throws InterruptedException {
    endTrip();
    if (process != null) {
      process.kill();
    }
    process = null;
  }

  private void start(long epoch) {
    fetchers = new LinkedHashMap<>();
    proposed = null;
    change = null;
    process = new BrokerProcess(host, epoch, brokers, version, this::submit);
  }

  void crash(long logEnd, long highWatermark) throws IOException, InterruptedException {
    if (!(trip instanceof Trip.Fetch) || trip.isAnswered()) {
      endTrip(); // a fetch request that is under way may still be handled
    }
    process.crash(logEnd, highWatermark);
    online = false;
    // What the next process will read from the disk is seen from now on. Nobody talks to it yet.
    start(process.epoch);
    process.load(highWatermark);
  }

  /** The process that has read the disk registers, and is talked to again. */
  void restart() {
    process.epoch++;
    online = true;
  }

  private static void clear(Path directory) throws IOException {
    if (Files.exists(directory)) {
      try (var found = Files.walk(directory)) {
        for (Path path : found.sorted(Comparator.reverseOrder()).toList()) {
          Files.deleteIfExists(path);
        }
      }
    }
    Files.createDirectories(directory);
  }

  // ---- metadata ----------------------------------------------------------------------------

  /** The broker hears of the partition's registration (ReplicaManager.applyDelta). */
  void hear(PartitionRecord record) {
    if (record.leader() != process.id && record.leader() >= 0) {
      fetcher(record.leader()).install();
    }
    process.hear(record);
  }

  /**
   * The thread that fetches from this leader.
   *
   * <p>A thread lives as long as any partition is fetched with it: here as if there were others,
   * so that what it has asked may outlive a time in which this partition was not its own.
   */
  private Fetcher fetcher(int leader) {
    return fetchers.computeIfAbsent(leader, id -> new Fetcher(process, id, version));
  }

  // ---- leader ------------------------------------------------------------------------------

  private Object leading() {
    Object partition = process.partition();
    if (partition == null) {
      throw new Refused("the broker does not know the partition");
    }
    return partition;
  }

  /** Appends one record; its offset. */
  long append() {
    Object info =
        Kafka.wireCall(
            leading(),
            "appendRecordsToLeader",
            type -> Records.argument(Kafka.raw(type)));
    return (long) Kafka.call(info, "firstOffset");
  }

  void deleteRecords(long offset) {
    Kafka.call(leading(), "deleteRecordsOnLeader", offset);
  }

  /** Lets the leader see that a follower is not fenced, and look at it. */
  void expandIsr(int follower) {
    Object replica = Kafka.orNull(Kafka.call(leading(), "getReplica", follower));
    if (replica == null) {
      throw new Refused("the leader knows of no such replica");
    }
    Object epoch = Kafka.orNull(Kafka.call(Kafka.call(replica, "stateSnapshot"), "brokerEpoch"));
    process.metadata.whileUnfenced(
        follower,
        epoch == null ? -1 : Kafka.number(epoch),
        () -> Kafka.call(leading(), "maybeExpandIsr", replica));
  }

  /** Lets replica.lag.time.max.ms pass since this follower, and no other, has caught up. */
  void shrinkIsr(int follower) {
    process.clock.sleep(BrokerProcess.LAG_MS + 1);
    for (Object replica : Kafka.each(Kafka.call(leading(), "remoteReplicas"))) {
      if ((int) Kafka.call(replica, "brokerId") != follower) {
        AtomicReference<Object> state = state(replica);
        state.set(Kafka.with(state.get(), "lastCaughtUpTimeMs", process.clock.milliseconds()));
      }
    }
    Kafka.call(leading(), "maybeShrinkIsr");
  }

  @SuppressWarnings("unchecked")
  private static AtomicReference<Object> state(Object replica) {
    return (AtomicReference<Object>) Kafka.get(replica, "replicaState");
  }

  /** AlterPartitionManager: one item of the partition is in flight; the harness answers it. */
  private CompletableFuture<Object> submit(Object leaderAndIsr) {
    proposed = leaderAndIsr;
    change = new CompletableFuture<>();
    return change;
  }

  /** The ISR change that the code proposes, or null; and `code` alone has it in flight. */
  Proposal proposes(Runnable code) {
    proposed = null;
    code.run();
    return proposed == null ? null : proposal(proposed);
  }

  private static Proposal proposal(Object sent) {
    List<List<Long>> isr = new ArrayList<>();
    for (Object member : Kafka.each(Kafka.call(sent, "isrWithBrokerEpoch"))) {
      long id = Kafka.number(Kafka.call(member, "brokerId"));
      isr.add(List.of(id, Kafka.number(Kafka.call(member, "brokerEpoch"))));
    }
    return new Proposal(
        (int) Kafka.call(sent, "leaderEpoch"), (int) Kafka.call(sent, "partitionEpoch"), isr);
  }

  /** The controller's answer to the change in flight. */
  void complete(String error, int partitionEpoch) {
    if (change == null) {
      throw new Refused("no AlterPartition is in flight");
    }
    CompletableFuture<Object> answered = change;
    change = null;
    if (error.equals("NONE")) {
      answered.complete(Kafka.call(proposed, "withPartitionEpoch", partitionEpoch));
    } else {
      answered.completeExceptionally(Errors.valueOf(error).exception());
    }
  }

  /** What this leader would propose; all that is touched is put back. */
  Proposal rehearse(int follower, boolean expand) {
    Object partition = process.partition();
    if (partition == null || !(boolean) Kafka.call(partition, "isLeader")) {
      return null;
    }
    Object before = Kafka.call(partition, "partitionState");
    Object sent = proposed;
    CompletableFuture<Object> inFlight = change;
    Map<AtomicReference<Object>, Object> states = new LinkedHashMap<>();
    for (Object replica : Kafka.each(Kafka.call(partition, "remoteReplicas"))) {
      states.put(state(replica), state(replica).get());
    }
    try {
      return states.isEmpty() ? null : proposes(() -> changeIsr(follower, expand));
    } finally {
      Kafka.set(partition, "partitionState", before);
      states.forEach(AtomicReference::set);
      proposed = sent;
      change = inFlight;
    }
  }

  void changeIsr(int follower, boolean expand) {
    if (expand) {
      expandIsr(follower);
    } else {
      shrinkIsr(follower);
    }
  }

  // ---- round trips -------------------------------------------------------------------------

  /** The fetcher thread that follows the partition, or null. */
  Fetcher following() {
    Object thread = Kafka.orNull(Kafka.call(process.fetchers, "getFetcher", View.PARTITION));
    return fetchers.values().stream().filter(each -> each.thread == thread).findFirst().orElse(null);
  }

  Object fetchState() {
    for (Fetcher fetcher : fetchers.values()) {
      Object state = fetcher.state();
      if (state != null) {
        return state;
      }
    }
    return null;
  }

  private Fetcher idle() {
    if (trip != null) {
      throw new Refused("the fetcher still waits for an answer");
    }
    Fetcher fetcher = following();
    if (fetcher == null) {
      throw new Refused("no fetcher follows the partition");
    }
    return fetcher;
  }

  void truncateToHighWatermark() {
    Fetcher fetcher = idle();
    Object partitions = fetcher.withoutEpoch();
    if (partitions == null) {
      throw new Refused("the fetcher has no truncating partition without epoch");
    }
    fetcher.truncateToHighWatermark(partitions);
  }

  void sendEpochRequest() {
    Fetcher fetcher = idle();
    Object partitions = fetcher.epochRequest();
    if (partitions == null) {
      throw new Refused("the fetcher has no truncating partition with an epoch");
    }
    trip = new Trip.Epoch(fetcher, partitions);
  }

  void sendFetch() {
    Fetcher fetcher = idle();
    Object built = fetcher.buildFetch();
    if (built == null) {
      throw new Refused("the fetcher has no partition that is ready for a fetch");
    }
    trip = new Trip.Fetch(fetcher, built);
  }

  /** Lets the leader answer. */
  void handle(Broker leader) {
    asked(leader).handle(leader.process);
    dropUnlessAwaited();
  }

  /** Lets the leader read what the fetch asks for; whether it then stands still before the count. */
  boolean read(Broker leader) throws InterruptedException {
    Trip fetch = asked(leader);
    boolean stopped = leader.process.read(process.id, () -> fetch.handle(leader.process));
    dropUnlessAwaited();
    return stopped;
  }

  /** Lets the leader count and answer the fetch that it has read. */
  void count(Broker leader) throws InterruptedException {
    leader.process.count(process.id);
    dropUnlessAwaited();
  }

  private Trip asked(Broker leader) {
    if (trip == null || trip.fetcher.leader != leader.process.id || trip.isAnswered()) {
      throw new Refused("no request of this follower waits at broker " + leader.process.id);
    }
    return trip;
  }

  /** An answer to an earlier life of the follower is lost. */
  private void dropUnlessAwaited() {
    if (trip != null && (!online || trip.fetcher.follower != process)) {
      trip = null;
    }
  }

  void processAnswer() throws InterruptedException {
    if (trip == null || !trip.isAnswered()) {
      throw new Refused("no answer has arrived");
    }
    Trip answered = trip;
    trip = null;
    trip = answered.process(false);
  }

  void loseMessage() throws InterruptedException {
    if (trip == null) {
      throw new Refused("nothing is in flight");
    }
    Trip lost = trip;
    trip = null;
    if (lost.fetcher.follower == process && online) {
      trip = lost.process(true);
    }
  }

  /** Nobody waits any more; a thread that stands still in its step is let go. */
  private void endTrip() throws InterruptedException {
    while (trip instanceof Trip.ListOffsets waiting) {
      trip = waiting.process(true);
    }
    trip = null;
  }

  // ---- the fetcher's own loop ----------------------------------------------------------------

  /** One doWork of the thread that follows the partition; `leaders` gives null for one that is gone. */
  Fetcher.Turn doWork(IntFunction<BrokerProcess> leaders) {
    Fetcher fetcher = idle();
    return fetcher.doWork(leaders.apply(fetcher.leader));
  }

  /** Whether the partition waits out an error. */
  boolean backsOff() {
    Object state = process == null || !online ? null : fetchState();
    return state != null && (boolean) Kafka.call(state, "isDelayed");
  }

  void endBackOff() {
    idle().endBackOff();
  }

  /** What the fetcher would do next, by the specification's names; changes nothing. */
  List<String> nextSteps() {
    Fetcher fetcher = trip == null && online ? following() : null;
    List<String> steps = new ArrayList<>();
    if (fetcher == null) {
      return steps;
    }
    if (fetcher.epochRequest() != null) {
      steps.add("SendEpochRequest");
    }
    if (fetcher.withoutEpoch() != null) {
      steps.add("TruncateToHighWatermark");
    }
    if ((boolean) Kafka.call(fetcher.state(), "isReadyForFetch")) {
      steps.add("SendFetch");
    }
    return steps;
  }
}
