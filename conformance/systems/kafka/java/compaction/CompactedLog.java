package kconform;

import java.io.File;
import java.io.IOException;
import java.lang.reflect.Array;
import java.lang.reflect.Type;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.function.Consumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;

/** One replica of a compacted partition: a UnifiedLog, a LogCleanerManager and a Cleaner. */
final class CompactedLog {
  static final int PRODUCER = 1;
  static final int EPOCH = 0;
  private static final TopicPartition PARTITION = new TopicPartition("t", 0);
  private static final String JAVA = "org.apache.kafka.storage.internals.log.";
  private static final int BUFFER_BYTES = 1 << 16;
  private static final int OFFSET_MAP_BYTES = 4096;
  private static final double LOAD_FACTOR = 0.9;
  private static final Object CONFIG =
      Kafka.make(
          Kafka.type(JAVA + "LogConfig"),
          Map.of(
              "segment.index.bytes", "1024",
              "cleanup.policy", "compact",
              "min.cleanable.dirty.ratio", "0.0",
              "delete.retention.ms", String.valueOf(DiskLog.EXPIRATION_MS)));

  private final Virtual.Clock clock;
  private final File directory;
  private final Object log;
  private final Object manager;
  private final Object cleaner;
  private int sequence;

  /** `logDirectory` is this replica's own. */
  CompactedLog(File logDirectory, Virtual.Clock clock) {
    this.clock = clock;
    directory = logDirectory;
    log = DiskLog.load(new File(logDirectory, PARTITION.toString()), clock, true, false, CONFIG);
    manager = Kafka.wire(scalaOrJava("LogCleanerManager"), this::ofManager);
    cleaner = Kafka.wire(scalaOrJava("Cleaner"), this::ofCleaner);
  }

  /** The cleaner's classes are Scala's up to 4.0. */
  private static Class<?> scalaOrJava(String name) {
    String scala = "kafka.log." + name;
    return Kafka.type(Kafka.exists(scala) ? scala : JAVA + name);
  }

  private Object ofManager(Type type) {
    Class<?> raw = Kafka.raw(type);
    return switch (raw.getSimpleName()) {
      case "Pool" -> pool(raw);
      case "LogDirFailureChannel" -> new LogDirFailureChannel(1);
      default -> raw == ConcurrentMap.class ? logs() : List.of(directory);
    };
  }

  private ConcurrentMap<Object, Object> logs() {
    return new ConcurrentHashMap<>(Map.of(PARTITION, log));
  }

  private Object pool(Class<?> type) {
    Object pool = Kafka.wire(type, parameter -> java.util.Optional.empty());
    Kafka.call(pool, "put", PARTITION, log);
    return pool;
  }

  private Object ofCleaner(Type type) {
    Class<?> raw = Kafka.raw(type);
    if (raw == int.class) {
      return BUFFER_BYTES; // and the cleaner's number
    }
    if (raw == double.class) {
      return LOAD_FACTOR;
    }
    if (raw == Time.class) {
      return clock;
    }
    return switch (raw.getSimpleName()) {
      case "OffsetMap" -> Kafka.make(Kafka.type(JAVA + "SkimpyOffsetMap"), OFFSET_MAP_BYTES, "MD5");
      case "Throttler" -> throttler(raw);
      case "Function1" -> (scala.Function1<Object, Object>) partition -> null;
      case "Consumer" -> (Consumer<Object>) partition -> {};
      default -> throw new Kafka.Unsupported("nothing is known to make a cleaner with a " + raw);
    };
  }

  private Object throttler(Class<?> type) {
    return Kafka.make(type, Double.MAX_VALUE, 300L, "cleaner", "bytes", clock);
  }

  // ---- actions -----------------------------------------------------------------------------

  void append(int key, boolean deletes) {
    Object none = compression();
    append(
        Kafka.callStatic(
            Kafka.type("MemoryRecords"), "withRecords", none, records(key, deletes)),
        "CLIENT");
  }

  void appendInTransaction(int key) {
    append(
        Kafka.callStatic(
            Kafka.type("MemoryRecords"),
            "withTransactionalRecords",
            compression(),
            (long) PRODUCER,
            (short) EPOCH,
            sequence++,
            records(key, false)),
        "CLIENT");
  }

  void appendMarker(boolean commits) {
    append(
        TransactionRecords.marker(PRODUCER, EPOCH, 0, commits, clock.milliseconds()),
        "COORDINATOR");
  }

  private static Object compression() {
    return Kafka.call(Kafka.callStatic(Kafka.type("Compression"), "none"), "build");
  }

  private Object[] records(int key, boolean deletes) {
    Class<?> type = Kafka.type("SimpleRecord");
    Object[] records = (Object[]) Array.newInstance(type, 1);
    byte[] value = deletes ? null : new byte[] {'v'};
    records[0] = Kafka.make(type, clock.milliseconds(), new byte[] {(byte) key}, value);
    return records;
  }

  private void append(Object records, String origin) {
    TransactionRecords.appendAsLeader(log, records, origin, TransactionRecords.UNVERIFIED, 0);
  }

  void roll() {
    Kafka.wireCall(log, "roll", type -> java.util.Optional.empty());
  }

  void advance(long offset) {
    DiskLog.advance(log, offset);
  }

  /** The leader's next batch, if a read finds one, and its high watermark. */
  void fetchFrom(CompactedLog leader) {
    Object isolation = Kafka.getStatic(Kafka.type("FetchIsolation"), "LOG_END");
    Object found =
        Kafka.get(
            Kafka.call(leader.log, "read", DiskLog.endOffset(log), 1, isolation, true), "records");
    if (Kafka.integer(Kafka.call(found, "sizeInBytes")) > 0) {
      Object records = DiskLog.copy(found);
      Kafka.wireCall(
          log,
          "appendAsFollower",
          type -> Kafka.raw(type) == int.class ? (Object) EPOCH : records);
    }
    Kafka.call(log, "updateHighWatermark", DiskLog.highWatermark(leader.log));
  }

  /** What a CleanerThread does once. */
  void clean() {
    Object cleanable =
        Kafka.orNull(Kafka.wireCall(manager, "grabFilthiestCompactedLog", this::ofGrab));
    if (cleanable == null) {
      throw new Broker.Refused("nothing is dirty");
    }
    Object result = Kafka.call(cleaner, "clean", cleanable);
    Object end =
        result instanceof Map.Entry<?, ?> entry ? entry.getKey() : ((scala.Tuple2<?, ?>) result)._1();
    Kafka.call(manager, "doneCleaning", PARTITION, directory, Kafka.number(end));
  }

  private Object ofGrab(Type type) {
    Class<?> raw = Kafka.raw(type);
    return raw == Time.class ? clock : Kafka.make(raw);
  }

  void removeExpiredProducers() {
    Kafka.call(log, "removeExpiredProducers", clock.milliseconds());
  }

  void close() {
    DiskLog.closeFiles(log);
  }

  // ---- what is seen ------------------------------------------------------------------------

  Object log() {
    return log;
  }

  /** Of the producer, or -1. */
  long lastDataOffset() {
    Object producers = Kafka.call(Kafka.call(log, "producerStateManager"), "activeProducers");
    Object entry = Kafka.map(producers).get((long) PRODUCER);
    return entry == null ? -1 : Kafka.number(Kafka.call(entry, "lastDataOffset"));
  }

  /** What the file of the cleaner says, or -1. */
  long checkpoint() throws IOException {
    Object offset = Kafka.map(Kafka.call(manager, "allCleanerCheckpoints")).get(PARTITION);
    return offset == null ? -1 : Kafka.number(offset);
  }
}
