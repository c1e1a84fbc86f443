package kconform;

import java.io.File;
import java.io.IOException;
import java.lang.reflect.Type;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.server.common.MetadataVersion;

/** A partition that transactions write: its leader's UnifiedLog, and the guards that it has given. */
final class TransactionPartition {
  private static final int LEADER_EPOCH = 0;
  private static final Object SENTINEL = verificationGuard();

  /** A batch: what it is, and for a marker the time that it was given. */
  record Batch(String kind, int epoch, int coordinatorEpoch, String value, long time, long offset) {}

  private final File folder;
  private final Virtual.Clock clock;
  private final boolean verifies;
  private final List<Object> guards = new ArrayList<>();
  private int leaders;
  private File directory;
  private Object log;

  TransactionPartition(File folder, Virtual.Clock clock, boolean verifies) {
    this.folder = folder;
    this.clock = clock;
    this.verifies = verifies;
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

  private static Object verificationGuard() {
    return Kafka.getStatic(
        Kafka.type("org.apache.kafka.storage.internals.log.VerificationGuard"), "SENTINEL");
  }

  // ---- batches -----------------------------------------------------------------------------

  /** UnifiedLog.maybeStartTransactionVerification; the number of the guard, 0 if none is needed. */
  int startVerification(int sequence, int epoch, boolean supportsEpochBump) {
    Object guard =
        Kafka.wireCall(
            log,
            "maybeStartTransactionVerification",
            type ->
                switch (type.getTypeName()) {
                  case "long" -> (Object) ProducerClient.PRODUCER_ID;
                  case "int" -> sequence;
                  case "short" -> (short) epoch;
                  default -> supportsEpochBump; // from 4.0 on
                });
    return guard == SENTINEL ? 0 : number(guard);
  }

  private int number(Object guard) {
    if (!guards.contains(guard)) {
      guards.add(guard);
    }
    return guards.indexOf(guard) + 1;
  }

  /** Appends a batch of one record, with the guard of that number. */
  void append(int epoch, int sequence, String value, int guard, boolean ofCoordinator) {
    Object records = batch(epoch, sequence, value.getBytes(StandardCharsets.UTF_8));
    long end = endOffset();
    Object with = guard == 0 ? SENTINEL : guards.get(guard - 1);
    appendAsLeader(records, ofCoordinator ? "COORDINATOR" : "CLIENT", with, 0);
    if (endOffset() == end) {
      throw new Broker.Refused("the batch is there already");
    }
  }

  private static Object batch(int epoch, int sequence, byte[] value) {
    Object none = Kafka.call(Kafka.callStatic(Kafka.type("Compression"), "none"), "build");
    Class<?> record = Kafka.type("SimpleRecord");
    Object[] records = (Object[]) java.lang.reflect.Array.newInstance(record, 1);
    records[0] = Kafka.make(record, (Object) value);
    return Kafka.callStatic(
        Kafka.type("MemoryRecords"),
        "withTransactionalRecords",
        none,
        ProducerClient.PRODUCER_ID,
        (short) epoch,
        sequence,
        records);
  }

  /** The same as KafkaApis does for a marker of WriteTxnMarkers. */
  void writeMarker(int epoch, int coordinatorEpoch, boolean commits, long time, int version) {
    Class<?> types = Kafka.type("ControlRecordType");
    Object marker =
        Kafka.make(
            Kafka.type("EndTransactionMarker"),
            Kafka.getStatic(types, commits ? "COMMIT" : "ABORT"),
            coordinatorEpoch);
    Object records =
        Kafka.callStatic(
            Kafka.type("MemoryRecords"),
            "withEndTransactionMarker",
            time,
            ProducerClient.PRODUCER_ID,
            (short) epoch,
            marker);
    appendAsLeader(records, "COORDINATOR", SENTINEL, version);
  }

  private void appendAsLeader(Object records, String origin, Object guard, int version) {
    try {
      Kafka.wireCall(
          log, "appendAsLeader", type -> appended(type, records, origin, guard, (short) version));
    } catch (ApiException error) {
      throw new Broker.Refused(error.toString());
    }
  }

  private static Object appended(
      Type type, Object records, String origin, Object guard, short version) {
    Class<?> raw = Kafka.raw(type);
    if (raw == int.class) {
      return LEADER_EPOCH;
    }
    if (raw == short.class) {
      return version;
    }
    if (raw == MetadataVersion.class) {
      return MetadataVersion.latestProduction();
    }
    return switch (raw.getSimpleName()) {
      case "AppendOrigin" -> Kafka.getStatic(raw, origin);
      case "VerificationGuard" -> guard;
      default -> raw.isInstance(records) ? records : Records.argument(raw);
    };
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
    for (long offset = 0; offset < end; offset = endOffset()) {
      Object records = DiskLog.copyOfBatchAt(before, offset);
      Kafka.wireCall(
          log,
          "appendAsFollower",
          type -> Kafka.raw(type) == int.class ? (Object) LEADER_EPOCH : records);
    }
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
    return DiskLog.batches(log).map(TransactionPartition::batch).toList();
  }

  private static Batch batch(Object batch) {
    Object first = DiskLog.first(batch);
    int epoch = (short) Kafka.call(batch, "producerEpoch");
    long time = Kafka.number(Kafka.call(first, "timestamp"));
    long offset = Kafka.number(Kafka.call(batch, "baseOffset"));
    if ((boolean) Kafka.call(batch, "isControlBatch")) {
      Object marker =
          Kafka.callStatic(Kafka.type("EndTransactionMarker"), "deserialize", first);
      String kind = Kafka.call(marker, "controlType").toString().equals("COMMIT") ? "Committed" : "Aborted";
      int coordinatorEpoch = Kafka.integer(Kafka.call(marker, "coordinatorEpoch"));
      return new Batch(kind, epoch, coordinatorEpoch, "", time, offset);
    }
    ByteBuffer value = (ByteBuffer) Kafka.call(first, "value");
    return new Batch("data", epoch, 0, StandardCharsets.UTF_8.decode(value).toString(), time, offset);
  }

  /** [epoch of the entry that is verified, number of its guard]; -1 and 0 if there is none. */
  int[] entry() {
    Object manager = Kafka.call(log, "producerStateManager");
    Object entry = Kafka.call(manager, "verificationStateEntry", ProducerClient.PRODUCER_ID);
    if (entry == null) {
      return new int[] {-1, 0};
    }
    return new int[] {
      (short) Kafka.call(entry, "epoch"), number(Kafka.call(entry, "verificationGuard"))
    };
  }
}
