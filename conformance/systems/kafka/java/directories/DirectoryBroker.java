package kconform;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.server.common.DirectoryEventHandler;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * A broker with two log directories: its process of now, the thread that moves the log, and the
 * fetcher of the current log. It is alone in its ISR whenever it leads.
 *
 * <p>What other threads tell the thread of the move is kept until the action of that comes.
 */
final class DirectoryBroker {
  static final int ID = 1;
  private static final int ELSEWHERE = 2;
  private static final String CHECKPOINT = "replication-offset-checkpoint";

  /** A copy of the partition: the epochs of its records, the high watermark, [epoch, start]. */
  record Copy(List<Integer> records, long highWatermark, List<List<Long>> epochs) {}

  final List<File> directories;
  private final BrokerProcess.Host host;
  private BrokerProcess process;
  private Fetcher fetcher;
  private int leaderEpoch;
  private int partitionEpoch;
  private boolean leads;
  /** With it the broker asks the controller before a future log takes over; else nobody. */
  private boolean assigns;
  final DirectoryAssignments assignments = new DirectoryAssignments(() -> this.mover.installed());
  private boolean defers;
  MoveThread mover;
  private Object manager;
  private Object added; // partitions with their InitialFetchStates
  private Object[] marked;
  private Copy current;
  private Copy future;
  private File directory;

  DirectoryBroker(File folder) {
    directories = List.of(new File(folder, "d1"), new File(folder, "d2"));
    String paths = directories.get(0).getPath() + "," + directories.get(1).getPath();
    host =
        new BrokerProcess.Host(
            ID,
            folder,
            Map.of(
                "log.dirs", paths,
                // A broker whose metadata lie in a directory that fails halts.
                "metadata.log.dir", new File(folder, "metadata").getPath(),
                "num.replica.alter.log.dirs.threads", "1"));
  }

  // ---- life --------------------------------------------------------------------------------

  /** A broker that leads in epoch 0, with one record in the first directory. */
  void reset(boolean asks) throws IOException, InterruptedException {
    end();
    assigns = asks;
    assignments.reset();
    host.directoryEvents = assigns ? assignments.handler : DirectoryEventHandler.NOOP;
    for (File each : directories) {
      clear(each.toPath());
    }
    leaderEpoch = -1;
    partitionEpoch = -1;
    start();
    Kafka.call(process.logManager, "maybeUpdatePreferredLogDir", View.PARTITION, directories.get(0).getPath());
    elect(true);
    append();
    remember();
  }

  private static void clear(Path directory) throws IOException {
    Utils.delete(directory.toFile());
    Files.createDirectories(directory);
    DirectoryAssignments.format(directory.toFile());
  }

  void end() throws InterruptedException {
    if (process == null) {
      return;
    }
    for (boolean isFuture : List.of(false, true)) {
      Object log = Kafka.orNull(Kafka.call(process.logManager, "getLog", View.PARTITION, isFuture));
      if (log != null) { // those of a directory that failed are closed
        DiskLog.closeFiles(log);
      }
    }
    process.unlock();
    process = null;
  }

  private void start() {
    process =
        new BrokerProcess(
            host, 0, List.of(ID, ELSEWHERE), MetadataVersion.latestProduction(), each -> new CompletableFuture<>());
    manager = Kafka.get(process.replicaManager, "replicaAlterLogDirsManager");
    mover = new MoveThread(manager);
    added = null;
    marked = null;
    fetcher = new Fetcher(process, ELSEWHERE, MetadataVersion.latestProduction());
    Object real = manager;
    Object kept =
        Overridden.make(
            real.getClass(),
            Set.of("addFetcherForPartitions", "markPartitionsForTruncation", "removeFetcherForPartitions",
                "shutdownIdleFetcherThreads"),
            this::told);
    Kafka.set(process.replicaManager, "replicaAlterLogDirsManager", kept);
  }

  /** What other threads tell the manager: a registration in an election, and each mark, are kept. */
  private Object told(String method, Object[] arguments) {
    if (method.equals("markPartitionsForTruncation")) {
      marked = arguments;
      return null;
    }
    if (method.equals("addFetcherForPartitions")) {
      if (defers) {
        added = arguments[0];
        return null;
      }
      mover.install();
    }
    return Kafka.call(manager, method, arguments);
  }

  /** The process is killed; its successor loads both logs and hears who leads. */
  void restart(String role, boolean saved) throws IOException, InterruptedException {
    if (saved) {
      Kafka.call(process.replicaManager, "checkpointHighWatermarks");
    }
    end();
    if (!saved) {
      for (File each : directories) {
        Files.deleteIfExists(each.toPath().resolve(CHECKPOINT));
      }
    }
    start();
    process.loadLogs();
    assignments.restarted();
    if (assigns) {
      recoverAbandonedFutureLogs();
    }
    elect(role.equals("leader"));
  }

  /** BrokerMetadataPublisher.initializeManagers: the metadata name the partition's directory. */
  private void recoverAbandonedFutureLogs() {
    Object topics = process.metadata.partition(registration()).apply(MetadataProvenance.EMPTY).topics();
    Kafka.wireCall(
        process.logManager,
        "recoverAbandonedFutureLogs",
        type -> {
          Class<?> raw = Kafka.raw(type);
          if (raw == int.class) {
            return (Object) ID;
          }
          return raw.isInstance(topics)
              ? topics
              : Kafka.play(raw, (proxy, method, arguments) -> assignments.assignedId());
        });
  }

  // ---- steps -------------------------------------------------------------------------------

  void alter(String name) {
    String path = directories.stream().filter(each -> each.getName().equals(name)).findFirst().orElseThrow().getPath();
    mover.install();
    Object errors = Kafka.call(process.replicaManager, "alterReplicaLogDirs", Map.of(View.PARTITION, path));
    Object error = Kafka.map(errors).get(View.PARTITION);
    if (!error.toString().equals("NONE")) {
      throw new Broker.Refused("alterReplicaLogDirs answers " + error);
    }
  }

  void elect(boolean leads) {
    leaderEpoch++;
    partitionEpoch++;
    this.leads = leads;
    if (!leads) {
      fetcher.install();
    }
    defers = true;
    try {
      process.hear(registration());
    } finally {
      defers = false;
    }
  }

  private PartitionRecord registration() {
    int leader = leads ? ID : ELSEWHERE;
    PartitionRecord record =
        new PartitionRecord()
            .setTopicId(Metadata.TOPIC_ID)
            .setPartitionId(0)
            .setReplicas(List.of(ID, ELSEWHERE))
            .setIsr(List.of(leader))
            .setLeader(leader)
            .setLeaderEpoch(Math.max(leaderEpoch, 0))
            .setPartitionEpoch(Math.max(partitionEpoch, 0));
    return assigns ? record.setDirectories(assignments.registered()) : record;
  }

  /** The record of the assignment: nothing else of the registration changes. */
  void learnAssignment() {
    assignments.learned();
    partitionEpoch++;
    process.hear(registration());
  }

  void addFetcher() {
    if (added == null) {
      throw new Broker.Refused("no registration is under way");
    }
    Object states = added;
    added = null;
    mover.install();
    Kafka.call(manager, "addFetcherForPartitions", states);
  }

  void markForTruncation() {
    if (marked == null) {
      throw new Broker.Refused("the current log was not truncated");
    }
    Object[] arguments = marked;
    marked = null;
    mover.marked();
    Kafka.call(manager, "markPartitionsForTruncation", arguments);
  }

  void append() {
    Kafka.wireCall(process.partition(), "appendRecordsToLeader", type -> Records.argument(Kafka.raw(type)));
  }

  /** The leader of elsewhere sends a record, and has committed nothing more. */
  void appendAsFollower(int epoch) {
    Object log = process.log();
    FetchResponseData.PartitionData data =
        new FetchResponseData.PartitionData().setHighWatermark(DiskLog.highWatermark(log)).setLogStartOffset(0);
    Kafka.call(data, "setRecords", Records.ofEpochs(DiskLog.endOffset(log), List.of(epoch)));
    answerFetch(data);
  }

  /** The leader of elsewhere says that the logs diverge from there on. */
  void truncate(long offset) {
    int epoch =
        DiskLog.batches(process.log())
            .filter(batch -> (long) Kafka.call(batch, "lastOffset") == offset - 1)
            .map(batch -> (int) Kafka.call(batch, "partitionLeaderEpoch"))
            .findFirst()
            .orElseThrow();
    FetchResponseData.PartitionData data =
        new FetchResponseData.PartitionData()
            .setHighWatermark(-1)
            .setDivergingEpoch(new FetchResponseData.EpochEndOffset().setEpoch(epoch).setEndOffset(offset));
    Kafka.call(data, "setRecords", Records.ofEpochs(0, List.of()));
    answerFetch(data);
  }

  private void answerFetch(FetchResponseData.PartitionData data) {
    Object built = fetcher.buildFetch();
    if (built == null) {
      throw new Broker.Refused("the current log fetches nothing");
    }
    FetchResponseData.FetchableTopicResponse topic =
        new FetchResponseData.FetchableTopicResponse().setTopic(Metadata.TOPIC).setTopicId(Metadata.TOPIC_ID);
    topic.partitions().add(data.setPartitionIndex(0));
    FetchResponseData response = new FetchResponseData().setSessionId(0);
    response.responses().add(topic);
    fetcher.processFetchRequest(built, (FetchResponse) Kafka.make(FetchResponse.class, response));
    if (process.hasFailed(View.PARTITION)) {
      throw new Broker.Refused("the current log's fetcher has failed");
    }
  }

  void failDirectory(String name) {
    for (File each : directories) {
      if (each.getName().equals(name)) {
        Kafka.wireCall(
            process.replicaManager,
            "handleLogDirFailure",
            type -> Kafka.raw(type) == boolean.class ? (Object) false : each.getPath());
      }
    }
  }

  // ---- what is seen ------------------------------------------------------------------------

  Object partition() {
    return process.partition();
  }

  boolean isOnline(File directory) {
    return (boolean) Kafka.call(process.logManager, "isLogDirOnline", directory.getPath());
  }

  /** Of a directory that fails the logs are seen as they were. */
  void remember() {
    Object partition = process.partition();
    Object log = partition == null ? null : Kafka.orNull(Kafka.call(partition, "log"));
    if (log == null) {
      return;
    }
    current = copy(log);
    directory = new File((String) Kafka.call(log, "parentDir"));
    Object future = Kafka.orNull(Kafka.call(partition, "futureLog"));
    if (future != null) {
      this.future = copy(future);
    }
  }

  private static Copy copy(Object log) {
    List<Integer> records = new ArrayList<>();
    DiskLog.batches(log).forEach(batch -> records.add((int) Kafka.call(batch, "partitionLeaderEpoch")));
    List<List<Long>> epochs = new ArrayList<>();
    Object cache = Kafka.orNull(Kafka.call(log, "leaderEpochCache"));
    for (Object entry : Kafka.each(Kafka.call(cache, "epochEntries"))) {
      epochs.add(List.of(Kafka.number(Kafka.get(entry, "epoch")), Kafka.number(Kafka.get(entry, "startOffset"))));
    }
    return new Copy(records, DiskLog.highWatermark(log), epochs);
  }

  Copy current() {
    return current;
  }

  String directory() {
    return directory.getName();
  }

  /** The future log, if a directory has one, whoever knows of it. */
  Copy future() {
    long count =
        directories.stream()
            .flatMap(each -> Stream.of(each.list()))
            .filter(name -> name.endsWith("-future"))
            .count();
    if (count > 1) {
      throw new IllegalStateException("there are " + count + " future logs");
    }
    return count == 0 ? null : future;
  }

  /** Where the registration that is under way begins; -1: none is. */
  long unadded() {
    Object state = added == null ? null : Kafka.map(added).get(View.PARTITION);
    return state == null ? -1 : Kafka.number(Kafka.call(state, "initOffset"));
  }

  long unmarked() {
    return marked == null ? -1 : (long) marked[2];
  }
}
