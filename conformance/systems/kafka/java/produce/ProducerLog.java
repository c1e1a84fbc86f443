package kconform;

import java.io.File;
import java.io.IOException;
import java.lang.reflect.Type;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.server.common.MetadataVersion;

/** One broker's replica of a partition: a UnifiedLog on disk, with its ProducerStateManager. */
final class ProducerLog {
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
    return DiskLog.load(directory, clock, clean, true);
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
    DiskLog.closeFiles(log);
  }

  /** Closes the files and removes them. */
  void end() throws IOException {
    closeFiles();
    Utils.delete(directory);
  }

  /** The producer is silent for as long as a broker remembers it. */
  void expire() {
    clock.sleep(DiskLog.EXPIRATION_MS);
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
      Object records = DiskLog.copyOfBatchAt(leader.log, endOffset());
      Kafka.wireCall(log, "appendAsFollower", type -> appended(type, records, epoch));
    }
    advance(Math.min(endOffset(), known));
    leader.advance(endOffset());
  }

  /** The watermark rises to this offset, or stays. */
  void advance(long offset) {
    DiskLog.advance(log, offset);
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
    return DiskLog.batches(log).map(ProducerLog::batch).toList();
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
