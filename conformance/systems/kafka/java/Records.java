package kconform;


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

  /** A batch of one record. It is written into when it is appended, so it is made each time. */
  private static Object oneRecord() {
    Object compression =
        Kafka.call(Kafka.callStatic(Kafka.type("Compression"), "none"), "build");
    Object[] records =
        (Object[]) java.lang.reflect.Array.newInstance(Kafka.type("SimpleRecord"), 1);
    records[0] = Kafka.make(Kafka.type("SimpleRecord"), (Object) VALUE);
    return Kafka.callStatic(Kafka.type("MemoryRecords"), "withRecords", compression, records);
  }
}
