package kconform;

import java.io.File;
import java.lang.reflect.Type;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogOffsetMetadata;
import scala.Option;

/** UnifiedLogs that no LogManager manages: how they are loaded from a directory, and read. */
final class DiskLog {
  static final int EXPIRATION_MS = 86_400_000;
  private static final String PACKAGE = "org.apache.kafka.storage.internals.log.";
  private static final Object STATS = BrokerProcess.topicStats();
  private static final Object CONFIG =
      Kafka.make(Kafka.type(PACKAGE + "LogConfig"), Map.of("segment.index.bytes", "1024"));

  private DiskLog() {}

  /** The log of a directory named `topic-partition`. `verifies`: transactions are verified. */
  static Object load(File directory, Time clock, boolean clean, boolean verifies) {
    return load(directory, clock, clean, verifies, CONFIG);
  }

  /** The same of a topic with settings of its own. */
  static Object load(File directory, Time clock, boolean clean, boolean verifies, Object config) {
    return load(directory, clock, clean, verifies, config, 0);
  }

  /** The log of a process that has died: what lies before the recovery point is not read again. */
  static Object recovered(File directory, Time clock, long recoveryPoint) {
    return load(directory, clock, false, false, CONFIG, recoveryPoint);
  }

  private static Object load(
      File directory, Time clock, boolean clean, boolean verifies, Object config, long recovered) {
    Map<Class<?>, Object> known =
        Map.of(File.class, directory, Time.class, clock, config.getClass(), config);
    List<Object> booleans = new ArrayList<>(List.of(clean));
    List<Object> longs = new ArrayList<>(List.of(0L, recovered));
    String scala = "kafka.log.UnifiedLog"; // up to 4.0
    if (Kafka.exists(scala)) {
      return Kafka.wireCall(
          Kafka.companion(scala), "apply", type -> argument(type, known, booleans, longs, verifies));
    }
    Class<?> java = Kafka.type(PACKAGE + "UnifiedLog");
    return Kafka.wireStatic(
        java, "create", type -> argument(type, known, booleans, longs, verifies));
  }

  /** The first boolean says whether the last shutdown was clean, the others are about features; the
   * first number where the log begins, the second one the recovery point. */
  private static Object argument(
      Type type,
      Map<Class<?>, Object> known,
      List<Object> booleans,
      List<Object> longs,
      boolean verifies) {
    Class<?> raw = Kafka.raw(type);
    if (known.containsKey(raw)) {
      return known.get(raw);
    }
    if (raw == boolean.class) {
      return booleans.isEmpty() ? false : booleans.remove(0);
    }
    if (raw == long.class) {
      return longs.isEmpty() ? 0L : longs.remove(0);
    }
    if (raw == int.class) {
      return EXPIRATION_MS; // time-outs and intervals of tasks that never run
    }
    if (raw == Optional.class || raw == Option.class) {
      return Optional.empty();
    }
    if (raw == ConcurrentMap.class) {
      return new ConcurrentHashMap<>();
    }
    if (raw == Scheduler.class) {
      return new Virtual.ImmediateScheduler();
    }
    return switch (raw.getSimpleName()) {
      case "BrokerTopicStats" -> STATS;
      case "ProducerStateManagerConfig" -> Kafka.make(raw, EXPIRATION_MS, verifies);
      case "LogDirFailureChannel" -> new LogDirFailureChannel(1);
      case "LogOffsetsListener" -> Kafka.getStatic(raw, "NO_OP_OFFSETS_LISTENER");
      default -> throw new Kafka.Unsupported("nothing is known to make a log with a " + raw);
    };
  }

  /** What is in the segments' files. */
  static Stream<Object> batches(Object log) {
    List<Object> batches = new ArrayList<>();
    for (Object segment : Kafka.each(Kafka.call(log, "logSegments"))) {
      Kafka.each(Kafka.call(Kafka.call(segment, "log"), "batches")).forEach(batches::add);
    }
    return batches.stream();
  }

  /** The first record of a batch. */
  static Object first(Object batch) {
    return StreamSupport.stream(((Iterable<?>) batch).spliterator(), false).findFirst().orElseThrow();
  }

  /** The batch at an offset, as a follower gets it. */
  static Object copyOfBatchAt(Object log, long offset) {
    Object isolation = Kafka.getStatic(Kafka.type("FetchIsolation"), "LOG_END");
    return copy(Kafka.get(Kafka.call(log, "read", offset, 1, isolation, true), "records"));
  }

  /** Records of a segment's file, in memory. */
  static Object copy(Object records) {
    ByteBuffer copy = ByteBuffer.allocate((int) Kafka.call(records, "sizeInBytes"));
    Kafka.call(records, "readInto", copy, 0);
    return Kafka.callStatic(Kafka.type("MemoryRecords"), "readableRecords", copy);
  }

  /** The watermark rises to this offset, or stays. */
  static void advance(Object log, long offset) {
    Kafka.call(log, "maybeIncrementHighWatermark", new LogOffsetMetadata(offset));
  }

  static long highWatermark(Object log) {
    return Kafka.number(Kafka.call(log, "highWatermark"));
  }

  static long endOffset(Object log) {
    return Kafka.number(Kafka.call(log, "logEndOffset"));
  }

  static void closeFiles(Object log) {
    Kafka.callRenamed(log, "closeHandlers", "closeQuietly"); // renamed in 4.4
  }
}
