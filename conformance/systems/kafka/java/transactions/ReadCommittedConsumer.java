package kconform;

import java.lang.reflect.Type;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.FetchResponseData.AbortedTransaction;
import org.apache.kafka.common.message.FetchResponseData.PartitionData;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** What the Java consumer makes of a fetch with read_committed: its CompletedFetch. */
final class ReadCommittedConsumer {
  private static final String PACKAGE = "org.apache.kafka.clients.consumer.internals.";
  private static final TopicPartition PARTITION = new TopicPartition("t", 0);
  private static final short REQUEST_VERSION = 12; // up to 4.0 the constructor takes it
  private static final int MANY = 1000;
  private static final Object CONFIG =
      Kafka.make(
          Kafka.type(PACKAGE + "FetchConfig"),
          1, // bytes that a broker waits for
          Integer.MAX_VALUE,
          0, // milliseconds that it waits
          Integer.MAX_VALUE,
          MANY,
          true, // checksums
          "",
          IsolationLevel.READ_COMMITTED);
  private static final Object DESERIALIZERS = deserializers();

  /** Up to 4.3 a fetch is drained when its last record was taken, and both are told. */
  private static final Object SUBSCRIPTIONS =
      Kafka.wire(Kafka.type(PACKAGE + "SubscriptionState"), Member::reset);

  private static final Object METRICS =
      Kafka.make(
          Kafka.type(PACKAGE + "FetchMetricsManager"),
          new Metrics(),
          Kafka.make(Kafka.type(PACKAGE + "FetchMetricsRegistry")));

  private final List<Integer> delivered = new ArrayList<>();
  private long position;

  private static Object deserializers() {
    Class<?> type = Kafka.type(PACKAGE + "Deserializers");
    ByteArrayDeserializer bytes = new ByteArrayDeserializer();
    try {
      return Kafka.make(type, bytes, bytes);
    } catch (Kafka.Unsupported newer) { // from 4.1 on with the consumer's metrics
      return Kafka.make(type, bytes, bytes, null);
    }
  }

  /** Takes what was fetched at its position: a copy of the batches, and the aborted transactions. */
  void complete(Object records, List<AbortedTransaction> aborted) {
    PartitionData answer = new PartitionData().setAbortedTransactions(aborted);
    Kafka.call(answer, "setRecords", records);
    Object fetch =
        Kafka.wire(Kafka.type(PACKAGE + "CompletedFetch"), type -> argument(type, answer));
    Object taken = Kafka.call(fetch, "fetchRecords", CONFIG, DESERIALIZERS, MANY);
    for (Object record : (List<?>) taken) {
      delivered.add((int) ((ConsumerRecord<?, ?>) record).offset() + 1);
    }
    position = Kafka.number(Kafka.call(fetch, "nextFetchOffset"));
  }

  private Object argument(Type type, PartitionData answer) {
    Class<?> raw = Kafka.raw(type);
    if (raw == Long.class) {
      return position;
    }
    if (raw == short.class) {
      return REQUEST_VERSION;
    }
    return switch (raw.getSimpleName()) {
      case "TopicPartition" -> PARTITION;
      case "PartitionData" -> answer;
      case "BufferSupplier" -> Kafka.getStatic(raw, "NO_CACHING");
      case "LogContext" -> Kafka.make(raw);
      case "Logger" -> org.slf4j.LoggerFactory.getLogger(ReadCommittedConsumer.class);
      case "SubscriptionState" -> SUBSCRIPTIONS;
      case "FetchMetricsAggregator" -> Kafka.make(raw, METRICS, Set.of(PARTITION));
      default -> throw new Kafka.Unsupported("nothing is known to complete a fetch with a " + raw);
    };
  }

  /** Goes on at this offset. */
  void seek(long offset) {
    position = offset;
  }

  long position() {
    return position;
  }

  /** Places in the log, from 1 on. */
  List<Integer> delivered() {
    return delivered;
  }
}
