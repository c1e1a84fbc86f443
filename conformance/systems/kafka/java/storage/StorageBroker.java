package kconform;

import java.io.File;
import java.io.IOException;
import java.lang.reflect.Array;
import java.lang.reflect.Type;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * One broker with one log directory, whose background tasks wait until they are run.
 *
 * <p>Who leads and what a leader of elsewhere sends is told to it. A restart is a new process on the
 * same directory; the clock goes on.
 */
final class StorageBroker {
  private static final int THIS = 1;
  private static final int ELSEWHERE = 2; // who leads is alone in the ISR
  private static final long RETENTION_MS = 1_000;
  private static final byte[] VALUE = {'v'};
  private static final MetadataVersion VERSION = MetadataVersion.latestProduction();

  /** Of a batch's header, what its CRC does not cover, and the CRC. */
  private static final int BASE_OFFSET_AT = 0;
  private static final int EPOCH_AT = 12;
  private static final int CRC_AT = 17;

  final LogDirectory files;
  private final File directory;
  private final BrokerProcess.Host host;
  private final int segmentBytes;
  private Virtual.Clock clock = new Virtual.Clock();
  private WaitingTasks tasks;
  private BrokerProcess process;
  private Fetcher fetcher;
  private int epoch;

  /** Sizes in records; `retained` -1 keeps all. */
  StorageBroker(File directory, int segmentRecords, int retainedRecords) {
    int batchBytes = (int) Kafka.call(batch(), "sizeInBytes");
    this.directory = directory;
    segmentBytes = segmentRecords * batchBytes;
    long retained = retainedRecords < 0 ? -1 : (long) retainedRecords * batchBytes;
    files = new LogDirectory(directory, batchBytes);
    host =
        new BrokerProcess.Host(
            THIS,
            directory,
            Map.of(
                "log.retention.bytes", String.valueOf(retained),
                "log.retention.ms", String.valueOf(RETENTION_MS),
                "log.flush.interval.ms", "0")); // every flush finds the log due
  }

  // ---- life ----------------------------------------------------------------------------------

  /** A broker that leads in epoch 0, on an empty disk. */
  void reset() throws IOException, InterruptedException {
    end();
    files.clear();
    clock = new Virtual.Clock();
    epoch = -1;
    start(true);
  }

  /** Ends what runs, if anything does. */
  void end() throws InterruptedException {
    if (process != null) {
      process.kill();
    }
    process = null;
  }

  /** A new process reads the disk, and hears who leads. */
  void start(boolean leads) throws IOException {
    if (process != null) {
      throw new Broker.Refused("the process is there");
    }
    launch();
    process.loadLogs();
    Object loaded = process.log();
    if (loaded != null) {
      files.watch(loaded, true);
    }
    elect(leads);
  }

  private void launch() {
    tasks = new WaitingTasks();
    process =
        new BrokerProcess(
            host,
            0,
            List.of(THIS, ELSEWHERE),
            VERSION,
            proposal -> new CompletableFuture<>(),
            clock,
            tasks);
    fetcher = new Fetcher(process, ELSEWHERE, VERSION);
  }

  /** The log's index cannot be read: its directory fails, and with it the broker. */
  void failToLoad() throws IOException, InterruptedException {
    Path unreadable = files.unreadable();
    Files.createDirectory(unreadable);
    try {
      launch();
      process.loadLogs();
      Object failures = Kafka.get(process.logManager, "logDirFailureChannel");
      if (!(boolean) Kafka.call(failures, "hasOfflineLogDir", directory.getAbsolutePath())) {
        throw new IllegalStateException("the directory did not fail");
      }
    } finally {
      end(); // LogManager.handleLogDirFailure halts a broker without any other directory
      Files.delete(unreadable);
    }
  }

  void kill() throws InterruptedException {
    up();
    end();
  }

  void losePower(int number, int kept, boolean torn) throws IOException, InterruptedException {
    kill();
    files.losePower(number, kept, torn);
  }

  /** What BrokerServer.shutdown does to replicas and logs; `fails`: no file can be flushed. */
  void shutDown(boolean fails) {
    BrokerProcess ends = up();
    files.fail(fails);
    Kafka.call(ends.replicaManager, "shutdown", true);
    Kafka.wireCall(ends.logManager, "shutdown", type -> 0L); // the broker's epoch
    files.fail(false);
    if (fails) {
      DiskLog.closeFiles(ends.log());
    }
    process = null;
  }

  // ---- the log serves ------------------------------------------------------------------------

  /** The controller has elected this broker, or another one. */
  void elect(boolean leads) throws IOException {
    epoch++;
    int leader = leads ? THIS : ELSEWHERE;
    if (!leads) {
      fetcher.install();
    }
    up()
        .hear(
            new PartitionRecord()
                .setTopicId(Metadata.TOPIC_ID)
                .setPartitionId(View.PARTITION.partition())
                .setReplicas(List.of(THIS, ELSEWHERE))
                .setIsr(List.of(leader))
                .setLeader(leader)
                .setLeaderEpoch(epoch)
                .setPartitionEpoch(epoch));
    // From 4.0 on no configuration takes so small a segment.
    Kafka.set(Kafka.call(log(), "config"), "segmentSize", segmentBytes);
  }

  void appendAsLeader(Object records) {
    Kafka.wireCall(
        partition(),
        "appendRecordsToLeader",
        type -> {
          Class<?> raw = Kafka.raw(type);
          return raw.getSimpleName().equals("MemoryRecords") ? records : Records.argument(raw);
        });
  }

  /** The leader of elsewhere sends a record, and may have committed it. */
  void appendAsFollower(int epochOfRecord, boolean commits) {
    long end = DiskLog.endOffset(log());
    process(batch(end, epochOfRecord), commits ? end + 1 : DiskLog.highWatermark(log()), 0);
  }

  /** What the leader of elsewhere answers a fetch. */
  void process(Object records, long highWatermark, long logStartOffset) {
    FetchResponseData.PartitionData data =
        new FetchResponseData.PartitionData()
            .setHighWatermark(highWatermark)
            .setLogStartOffset(logStartOffset);
    Kafka.call(data, "setRecords", records);
    long end = DiskLog.endOffset(log());
    ofFollower(
        "processPartitionData",
        type -> type == long.class ? (Object) end : type == int.class ? (Object) epoch : data);
  }

  /** The leader of elsewhere says that the logs diverge from there on. */
  void truncate(long offset) {
    ofFollower("truncate", type -> Kafka.make(type, offset, true));
  }

  /** The leader of elsewhere has nothing before the offset. */
  void startAnew(long offset) {
    ofFollower("truncateFullyAndStartAt", type -> offset);
  }

  private void ofFollower(String step, Function<Class<?>, Object> argument) {
    if (leads()) {
      throw new Broker.Refused("the log follows nobody");
    }
    Kafka.wireCall(
        fetcher.thread,
        step,
        (Type type) -> {
          Class<?> raw = Kafka.raw(type);
          return raw == TopicPartition.class ? View.PARTITION : argument.apply(raw);
        });
  }

  void deleteRecords(long offset) {
    Kafka.call(partition(), "deleteRecordsOnLeader", offset);
  }

  // ---- work in the background ----------------------------------------------------------------

  void passTime() {
    clock.sleep(RETENTION_MS + 1);
  }

  /** A method of LogManager that a periodic task calls. */
  void ofLogManager(String method) {
    Kafka.call(up().logManager, method);
  }

  void checkpointHighWatermarks() {
    Kafka.call(up().replicaManager, "checkpointHighWatermarks");
  }

  void runTask(int number) {
    up();
    tasks.run(number);
  }

  // ---- batches -------------------------------------------------------------------------------

  /** A batch of one record of now, as a client sends it; all are of one size. */
  Object batch() {
    Object[] records = (Object[]) Array.newInstance(Kafka.type("SimpleRecord"), 1);
    records[0] = Kafka.make(Kafka.type("SimpleRecord"), clock.milliseconds(), null, VALUE);
    Object none = Kafka.call(Kafka.callStatic(Kafka.type("Compression"), "none"), "build");
    return Kafka.callStatic(Kafka.type("MemoryRecords"), "withRecords", none, records);
  }

  /** The same with what a leader writes over. */
  Object batch(long baseOffset, int leaderEpoch) {
    Object records = batch();
    bytes(records).putLong(BASE_OFFSET_AT, baseOffset).putInt(EPOCH_AT, leaderEpoch);
    return records;
  }

  /** These bytes, of which one is another. */
  static Object corrupt(Object records) {
    ByteBuffer bytes = bytes(records);
    bytes.put(CRC_AT, (byte) (bytes.get(CRC_AT) ^ 1));
    return records;
  }

  static Object joined(Object first, Object second) {
    ByteBuffer both = ByteBuffer.allocate(bytes(first).remaining() + bytes(second).remaining());
    both.put(bytes(first)).put(bytes(second)).flip();
    return Kafka.callStatic(Kafka.type("MemoryRecords"), "readableRecords", both);
  }

  private static ByteBuffer bytes(Object records) {
    return (ByteBuffer) Kafka.call(records, "buffer");
  }

  // ---- parts ---------------------------------------------------------------------------------

  boolean isUp() {
    return process != null;
  }

  BrokerProcess up() {
    if (process == null) {
      throw new Broker.Refused("there is no process");
    }
    return process;
  }

  private Object partition() {
    return up().partition();
  }

  Object log() {
    return up().log();
  }

  boolean leads() {
    return (boolean) Kafka.call(partition(), "isLeader");
  }

  int leaderEpoch() {
    return (int) Kafka.call(partition(), "getLeaderEpoch");
  }

  List<String> tasks() {
    return tasks.names();
  }
}
