package kconform;

import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.utils.Utils;

/** A partition that transactions write: its leader's UnifiedLog, and the guards that it has given. */
final class TransactionPartition {
  /** A batch: what it is, and for a marker the time that it was given. */
  record Batch(String kind, int epoch, int coordinatorEpoch, String value, long time, long offset) {}

  private final File folder;
  private final Virtual.Clock clock;
  private final boolean verifies;
  private final ProducerEpochs epochs;
  private final List<Object> guards = new ArrayList<>();
  private int leaders;
  private File directory;
  private Object log;

  TransactionPartition(
      File folder, Virtual.Clock clock, boolean verifies, ProducerEpochs epochs) {
    this.folder = folder;
    this.clock = clock;
    this.verifies = verifies;
    this.epochs = epochs;
    load();
  }

  /** Each leader has a disk of its own. */
  private void load() {
    directory = new File(folder, "leader-" + leaders++ + "/t-0");
    log = DiskLog.load(directory, clock, true, verifies);
  }

  void end() throws IOException {
    DiskLog.closeFiles(log);
    Utils.delete(folder);
  }

  // ---- batches -----------------------------------------------------------------------------

  /** UnifiedLog.maybeStartTransactionVerification; the number of the guard, 0 if none is needed. */
  int startVerification(int sequence, int epoch, boolean supportsEpochBump) {
    Object guard =
        TransactionRecords.call(
            log,
            "maybeStartTransactionVerification",
            type ->
                switch (type.getTypeName()) {
                  case "long" -> (Object) epochs.id(epoch);
                  case "int" -> sequence;
                  case "short" -> epochs.epoch(epoch);
                  default -> supportsEpochBump; // from 4.0 on
                });
    return guard == TransactionRecords.UNVERIFIED ? 0 : number(guard);
  }

  private int number(Object guard) {
    if (!guards.contains(guard)) {
      guards.add(guard);
    }
    return guards.indexOf(guard) + 1;
  }

  /** Appends a batch of one record, with the guard of that number. */
  void append(int epoch, int sequence, String value, int guard, boolean ofCoordinator) {
    byte[] written = value.getBytes(StandardCharsets.UTF_8);
    Object records =
        TransactionRecords.data(epochs.id(epoch), epochs.epoch(epoch), sequence, written);
    long end = endOffset();
    Object with = guard == 0 ? TransactionRecords.UNVERIFIED : guards.get(guard - 1);
    TransactionRecords.appendAsLeader(
        log, records, ofCoordinator ? "COORDINATOR" : "CLIENT", with, 0);
    if (endOffset() == end) {
      throw new Broker.Refused("the batch is there already");
    }
  }

  /** What WriteTxnMarkers of this version appends. */
  void writeMarker(int epoch, int coordinatorEpoch, boolean commits, long time, int version) {
    Object records =
        TransactionRecords.marker(
            epochs.id(epoch), epochs.epoch(epoch), coordinatorEpoch, commits, time);
    TransactionRecords.appendAsLeader(
        log, records, "COORDINATOR", TransactionRecords.UNVERIFIED, version);
  }

  // ---- replicas ----------------------------------------------------------------------------

  /** All replicas have all of the log. */
  void replicate() {
    DiskLog.advance(log, endOffset());
  }

  /** A follower leads that has the log up to `end`. */
  void elect(long end) {
    Object before = log;
    load();
    TransactionRecords.replicate(before, log, end);
    Kafka.call(log, "updateHighWatermark", DiskLog.highWatermark(before));
    DiskLog.closeFiles(before);
  }

  private long endOffset() {
    return DiskLog.endOffset(log);
  }

  // ---- what is seen ------------------------------------------------------------------------

  long highWatermark() {
    return DiskLog.highWatermark(log);
  }

  List<Batch> batches() {
    return DiskLog.batches(log).map(this::batch).toList();
  }

  private Batch batch(Object batch) {
    Object first = DiskLog.first(batch);
    int epoch = epochs.numberOf(batch);
    long time = Kafka.number(Kafka.call(first, "timestamp"));
    long offset = Kafka.number(Kafka.call(batch, "baseOffset"));
    if ((boolean) Kafka.call(batch, "isControlBatch")) {
      Object marker = TransactionRecords.markerOf(first);
      String kind = TransactionRecords.kind(marker);
      int coordinatorEpoch = Kafka.integer(Kafka.call(marker, "coordinatorEpoch"));
      return new Batch(kind, epoch, coordinatorEpoch, "", time, offset);
    }
    ByteBuffer value = (ByteBuffer) Kafka.call(first, "value");
    return new Batch("data", epoch, 0, StandardCharsets.UTF_8.decode(value).toString(), time, offset);
  }

  /** [epoch of the entry that is verified, number of its guard]; -1 and 0 if there is none. */
  int[] entry() {
    Object manager = Kafka.call(log, "producerStateManager");
    for (long id : epochs.ids()) {
      Object entry = Kafka.call(manager, "verificationStateEntry", id);
      if (entry != null) {
        return new int[] {
          epochs.number(id, (short) Kafka.call(entry, "epoch")),
          number(Kafka.call(entry, "verificationGuard"))
        };
      }
    }
    return new int[] {-1, 0};
  }
}
