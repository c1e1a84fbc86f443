package kconform;

import java.io.File;
import java.io.IOException;
import java.lang.reflect.Type;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogOffsetMetadata;
import scala.Option;

/** One broker's replica of a partition: a UnifiedLog on disk, with its ProducerStateManager. */
final class ProducerLog {
  static final int EXPIRATION_MS = 86_400_000;
  private static final String PACKAGE = "org.apache.kafka.storage.internals.log.";
  private static final Object STATS = BrokerProcess.topicStats();
  private static final Object CONFIG =
      Kafka.make(Kafka.type(PACKAGE + "LogConfig"), Map.of("segment.index.bytes", "1024"));

  /** A batch of the log, as its header says; the value is that of its first record. */
  record Batch(int epoch, int sequence, int size, int value, long offset, int leaderEpoch) {
    long end() {
      return offset + size;
    }
  }

  private final File directory;
  private final Virtual.Clock clock = new Virtual.Clock();
  private Object log;

  /** An empty log below a folder that nothing else is in. */
  ProducerLog(File folder) {
    directory = new File(folder, "t-0");
    log = load(true);
  }

  private Object load(boolean clean) {
    List<Object> booleans = new ArrayList<>(List.of(clean));
    String scala = "kafka.log.UnifiedLog"; // up to 4.0
    if (Kafka.exists(scala)) {
      return Kafka.wireCall(Kafka.companion(scala), "apply", type -> argument(type, booleans));
    }
    Class<?> java = Kafka.type(PACKAGE + "UnifiedLog");
    return Kafka.wireStatic(java, "create", type -> argument(type, booleans));
  }

  /** The first boolean says whether the last shutdown was clean; the others are about features. */
  private Object argument(Type type, List<Object> booleans) {
    Class<?> raw = Kafka.raw(type);
    if (raw == boolean.class) {
      return booleans.isEmpty() ? false : booleans.remove(0);
    }
    if (raw == long.class) {
      return 0L; // where the log begins, and from where on a crash is recovered
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
    if (raw == Time.class) {
      return clock;
    }
    return switch (raw.getSimpleName()) {
      case "File" -> directory;
      case "LogConfig" -> CONFIG;
      case "BrokerTopicStats" -> STATS;
      case "ProducerStateManagerConfig" -> Kafka.make(raw, EXPIRATION_MS, true);
      case "LogDirFailureChannel" -> new LogDirFailureChannel(1);
      case "LogOffsetsListener" -> Kafka.getStatic(raw, "NO_OP_OFFSETS_LISTENER");
      default -> throw new Kafka.Unsupported("nothing is known to make a log with a " + raw);
    };
  }

  // ---- life --------------------------------------------------------------------------------

  /** The process stops in order, or is killed; its successor loads the log. The watermark comes from
   * a checkpoint, which the log itself does not have. */
  void restart(boolean clean) {
    long watermark = highWatermark();
    if (clean) {
      shutDown();
    } else {
      closeFiles();
    }
    log = load(clean);
    Kafka.call(log, "updateHighWatermark", watermark);
  }

  /** What LogManager.shutdown calls of each log. */
  private void shutDown() {
    String trim = "prepareActiveSegmentForClose"; // from 4.4 on; before, it was a part of `close`
    if (Kafka.hasMethod(log, trim)) {
      Kafka.call(log, trim);
    }
    Kafka.call(log, "flush", true);
    Kafka.call(log, "close");
  }

  private void closeFiles() {
    Kafka.callRenamed(log, "closeHandlers", "closeQuietly"); // renamed in 4.4
  }

  /** Closes the files and removes them. */
  void end() throws IOException {
    closeFiles();
    Utils.delete(directory);
  }

  /** The producer is silent for as long as a broker remembers it. */
  void expire() {
    clock.sleep(EXPIRATION_MS);
    Kafka.call(log, "removeExpiredProducers", clock.milliseconds());
  }

  // ---- appends -----------------------------------------------------------------------------

  /** Appends as the leader of this epoch; the answered offset. The records are written into. */
  long appendAsLeader(Object records, int epoch) {
    Object info = Kafka.wireCall(log, "appendAsLeader", type -> appended(type, records, epoch));
    return Kafka.number(Kafka.call(info, "firstOffset"));
  }

  private static Object appended(Type type, Object records, int epoch) {
    Class<?> raw = Kafka.raw(type);
    if (raw == int.class) {
      return epoch;
    }
    if (raw == MetadataVersion.class) {
      return MetadataVersion.latestProduction();
    }
    return raw.isInstance(records) ? records : Records.argument(raw);
  }

  /** Takes the leader's next batch, if there is one; both watermarks follow. */
  void fetchFrom(ProducerLog leader, int epoch) {
    long known = leader.highWatermark();
    if (endOffset() < leader.endOffset()) {
      Object records = leader.copyOfBatchAt(endOffset());
      Kafka.wireCall(log, "appendAsFollower", type -> appended(type, records, epoch));
    }
    advance(Math.min(endOffset(), known));
    leader.advance(endOffset());
  }

  private Object copyOfBatchAt(long offset) {
    Object isolation = Kafka.getStatic(Kafka.type("FetchIsolation"), "LOG_END");
    Object records = Kafka.get(Kafka.call(log, "read", offset, 1, isolation, true), "records");
    ByteBuffer copy = ByteBuffer.allocate((int) Kafka.call(records, "sizeInBytes"));
    Kafka.call(records, "readInto", copy, 0);
    return Kafka.callStatic(Kafka.type("MemoryRecords"), "readableRecords", copy);
  }

  /** The watermark rises to this offset, or stays. */
  void advance(long offset) {
    Kafka.call(log, "maybeIncrementHighWatermark", new LogOffsetMetadata(offset));
  }

  /** Truncates what the leader does not have. */
  void truncateTo(ProducerLog leader) {
    List<Batch> own = batches();
    List<Batch> led = leader.batches();
    int common = 0;
    while (common < Math.min(own.size(), led.size()) && own.get(common).equals(led.get(common))) {
      common++;
    }
    Kafka.call(log, "truncateTo", common == 0 ? 0L : own.get(common - 1).end());
  }

  // ---- what is seen ------------------------------------------------------------------------

  long highWatermark() {
    return Kafka.number(Kafka.call(log, "highWatermark"));
  }

  long endOffset() {
    return Kafka.number(Kafka.call(log, "logEndOffset"));
  }

  /** What is in the segments' files. */
  List<Batch> batches() {
    List<Batch> batches = new ArrayList<>();
    for (Object segment : Kafka.each(Kafka.call(log, "logSegments"))) {
      for (Object batch : Kafka.each(Kafka.call(Kafka.call(segment, "log"), "batches"))) {
        batches.add(batch(batch));
      }
    }
    return batches;
  }

  private static Batch batch(Object batch) {
    Object first = ((Iterable<?>) batch).iterator().next();
    return new Batch(
        (short) Kafka.call(batch, "producerEpoch"),
        (int) Kafka.call(batch, "baseSequence"),
        (int) Kafka.call(batch, "countOrNull"),
        number((ByteBuffer) Kafka.call(first, "value")),
        (long) Kafka.call(batch, "baseOffset"),
        (int) Kafka.call(batch, "partitionLeaderEpoch"));
  }

  private static int number(ByteBuffer value) {
    return Integer.parseInt(StandardCharsets.UTF_8.decode(value).toString());
  }

  /** The entries in memory. */
  Collection<?> producers() {
    return Kafka.map(Kafka.call(manager(), "activeProducers")).values();
  }

  /** By offset, the entries in each snapshot's file. */
  Map<Long, Collection<?>> snapshots() {
    Map<Long, Collection<?>> entries = new java.util.TreeMap<>();
    Class<?> type = manager().getClass();
    Kafka.map(Kafka.get(manager(), "snapshots"))
        .forEach(
            (offset, file) ->
                entries.put(
                    (Long) offset,
                    (Collection<?>) Kafka.callStatic(type, "readSnapshot", Kafka.call(file, "file"))));
    return entries;
  }

  private Object manager() {
    return Kafka.call(log, "producerStateManager");
  }
}
