package kconform;

import java.nio.ByteBuffer;
import java.util.Map;
import java.util.TreeMap;

/**
 * Transactional ids that are loaded, as TransactionStateManager.loadTransactionMetadata does it with
 * what TransactionLog makes of each record.
 */
final class LoadedTransactions implements LogReader {
  private static final String JAVA = "org.apache.kafka.coordinator.transaction.TransactionLog";
  private static final boolean IN_JAVA = Kafka.exists(JAVA); // from 4.3 on
  private static final Object LOG =
      IN_JAVA ? null : Kafka.getStatic(Kafka.type("kafka.coordinator.transaction.TransactionLog$"), "MODULE$");

  private final Map<String, Object> transactions = new TreeMap<>();

  @Override
  public void read(Loads.Entry entry) {
    if (entry.commit() != null) {
      return;
    }
    ByteBuffer key = ByteBuffer.wrap(entry.key());
    if (IN_JAVA) {
      keep(Kafka.callStatic(Kafka.type(JAVA), "read", key, entry.valueBuffer()));
      return;
    }
    String id = id(Kafka.call(LOG, "readTxnRecordKey", key));
    if (id == null) {
      return; // a key of an unknown version: a warning, and the next record
    }
    Object read = Kafka.call(LOG, "readTxnRecordValue", id, entry.valueBuffer());
    put(id, ((scala.Option<?>) read).isEmpty() ? null : ((scala.Option<?>) read).get());
  }

  /** TransactionLog.ReadResult. */
  private void keep(Object result) {
    switch (result.getClass().getSimpleName()) {
      case "TxnRecord" ->
          put((String) Kafka.call(result, "transactionId"), Kafka.call(result, "metadata"));
      case "TxnTombstone" -> put((String) Kafka.call(result, "transactionId"), null);
      default -> {} // of an unknown version: a warning, and the next record
    }
  }

  /** 4.0 has TxnKey and UnknownKey, later releases an Either of a version and an id. */
  private static String id(Object read) {
    if (read instanceof scala.util.Either<?, ?> either) {
      return either.isRight() ? (String) either.toOption().get() : null;
    }
    return read.getClass().getSimpleName().equals("TxnKey")
        ? (String) Kafka.call(read, "transactionalId")
        : null;
  }

  private void put(String id, Object metadata) {
    if (metadata == null) {
      transactions.remove(id);
    } else {
      transactions.put(id, metadata);
    }
  }

  @Override
  public String text() {
    return transactions.toString();
  }
}
