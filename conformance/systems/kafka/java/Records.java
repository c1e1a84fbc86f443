package kconform;

import java.lang.reflect.Array;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/** What Partition.appendRecordsToLeader takes, by the types of its parameters. */
final class Records {
  private static final byte[] VALUE = {'v'};

  private Records() {}

  static Object argument(Class<?> type) {
    return switch (type.getSimpleName()) {
      case "MemoryRecords" -> oneRecord();
      case "AppendOrigin" -> constant(type, "CLIENT");
      case "int" -> 1; // required acks
      case "RequestLocal" -> Kafka.callStatic(type, "withThreadConfinedCaching");
      case "VerificationGuard" -> constant(type, "SENTINEL");
      case "short" -> (short) 0; // transaction version
      default -> throw new Kafka.Unsupported("nothing is known to append with a " + type);
    };
  }

  private static Object constant(Class<?> type, String name) {
    return Kafka.getStatic(type, name);
  }

  /** A batch of one record for each leader epoch, from an offset on. */
  static Object ofEpochs(long offset, List<Integer> epochs) {
    List<ByteBuffer> batches = new ArrayList<>();
    for (int i = 0; i < epochs.size(); i++) {
      Object batch =
          Kafka.callStatic(
              Kafka.type("MemoryRecords"), "withRecords",
              offset + i, compression(), epochs.get(i), simpleRecord());
      batches.add((ByteBuffer) Kafka.call(batch, "buffer"));
    }
    ByteBuffer all = ByteBuffer.allocate(batches.stream().mapToInt(ByteBuffer::remaining).sum());
    batches.forEach(all::put);
    all.flip();
    return Kafka.callStatic(Kafka.type("MemoryRecords"), "readableRecords", all);
  }

  /** A batch of one record. It is written into when it is appended, so it is made each time. */
  private static Object oneRecord() {
    return Kafka.callStatic(
        Kafka.type("MemoryRecords"), "withRecords", compression(), simpleRecord());
  }

  private static Object compression() {
    return Kafka.call(Kafka.callStatic(Kafka.type("Compression"), "none"), "build");
  }

  private static Object[] simpleRecord() {
    Object[] records = (Object[]) Array.newInstance(Kafka.type("SimpleRecord"), 1);
    records[0] = Kafka.make(Kafka.type("SimpleRecord"), (Object) VALUE);
    return records;
  }
}
