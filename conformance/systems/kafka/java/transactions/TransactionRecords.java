package kconform;

import java.lang.reflect.Array;
import java.lang.reflect.Type;
import java.util.function.Function;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.server.common.MetadataVersion;

/** What transactions write into a partition, and how a leader's UnifiedLog appends it. */
final class TransactionRecords {
  /** What an append needs no verification of. */
  static final Object UNVERIFIED =
      Kafka.getStatic(
          Kafka.type("org.apache.kafka.storage.internals.log.VerificationGuard"), "SENTINEL");

  private static final int LEADER_EPOCH = 0;

  private TransactionRecords() {}

  /** A batch of one record of a transaction. */
  static Object data(long producerId, int epoch, int sequence, byte[] value) {
    Object none = Kafka.call(Kafka.callStatic(Kafka.type("Compression"), "none"), "build");
    Class<?> record = Kafka.type("SimpleRecord");
    Object[] records = (Object[]) Array.newInstance(record, 1);
    records[0] = Kafka.make(record, (Object) value);
    return Kafka.callStatic(
        Kafka.type("MemoryRecords"),
        "withTransactionalRecords",
        none,
        producerId,
        (short) epoch,
        sequence,
        records);
  }

  /** The same as KafkaApis makes for a marker of WriteTxnMarkers. */
  static Object marker(
      long producerId, int epoch, int coordinatorEpoch, boolean commits, long time) {
    Class<?> types = Kafka.type("ControlRecordType");
    Object marker =
        Kafka.make(
            Kafka.type("EndTransactionMarker"),
            Kafka.getStatic(types, commits ? "COMMIT" : "ABORT"),
            coordinatorEpoch);
    return Kafka.callStatic(
        Kafka.type("MemoryRecords"),
        "withEndTransactionMarker",
        time,
        producerId,
        (short) epoch,
        marker);
  }

  /** The marker that is the first record of a control batch. */
  static Object markerOf(Object first) {
    return Kafka.callStatic(Kafka.type("EndTransactionMarker"), "deserialize", first);
  }

  /** How a marker ends its transaction. */
  static String kind(Object marker) {
    return Kafka.call(marker, "controlType").toString().equals("COMMIT") ? "Committed" : "Aborted";
  }

  /** UnifiedLog.appendAsLeader; Refused if it throws an error of the protocol. */
  static void appendAsLeader(Object log, Object records, String origin, Object guard, int version) {
    call(log, "appendAsLeader", type -> argument(type, records, origin, guard, (short) version));
  }

  /** A method of a log; Refused, with the error's name first, if it throws one of the protocol. */
  static Object call(Object log, String method, Function<Type, Object> argument) {
    try {
      return Kafka.wireCall(log, method, argument);
    } catch (ApiException error) {
      throw new Broker.Refused(Errors.forException(error) + ": " + error);
    }
  }

  private static Object argument(
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

  /** Copies a log up to `end` into another one, as a follower appends what it fetches. */
  static void replicate(Object leader, Object follower, long end) {
    for (long offset = DiskLog.endOffset(follower); offset < end; ) {
      Object records = DiskLog.copyOfBatchAt(leader, offset);
      Kafka.wireCall(
          follower,
          "appendAsFollower",
          type -> Kafka.raw(type) == int.class ? (Object) LEADER_EPOCH : records);
      offset = DiskLog.endOffset(follower);
    }
  }
}
