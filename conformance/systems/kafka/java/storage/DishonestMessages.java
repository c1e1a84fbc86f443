package kconform;

import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.FetchRequest;

/** What no honest peer sends, and how the broker refuses it: LogStorageSteps.Refuse. */
final class DishonestMessages {
  private static final long ELSEWHERE_OFFSET = 7;
  private static final int MAX_BYTES = 1 << 20;
  private static final int NO_EPOCH = -1;

  /** Exceptions that no client is told of, so that no error code stands for them. */
  private static final Map<String, String> BETWEEN_BROKERS =
      Map.of(
          "UnexpectedAppendOffsetException", "UNEXPECTED_APPEND_OFFSET",
          "OffsetsOutOfOrderException", "OFFSETS_OUT_OF_ORDER");

  private final StorageBroker broker;

  DishonestMessages(StorageBroker broker) {
    this.broker = broker;
  }

  /** What the message is answered; NONE if the broker takes it. */
  String refusal(String message) throws Exception {
    try {
      return (broker.leads() ? toLeader(message) : toFollower(message)).name();
    } catch (Broker.Refused refused) {
      throw refused;
    } catch (Exception error) {
      String name = BETWEEN_BROKERS.get(error.getClass().getSimpleName());
      Errors code = Errors.forException(error);
      if (name == null && code == Errors.UNKNOWN_SERVER_ERROR) {
        throw error;
      }
      return name == null ? code.name() : name;
    }
  }

  private Errors toLeader(String message) {
    long start = (long) Kafka.call(broker.log(), "logStartOffset");
    switch (message) {
      case "CorruptBatch" -> broker.appendAsLeader(StorageBroker.corrupt(broker.batch()));
      case "BatchOfOtherOffset" -> broker.appendAsLeader(broker.batch(ELSEWHERE_OFFSET, NO_EPOCH));
      case "DeleteAboveHighWatermark" -> broker.deleteRecords(highWatermark() + 1);
      case "DeleteBelowZero" -> broker.deleteRecords(-2); // -1 stands for the high watermark
      case "FetchAboveLogEnd" -> {
        return fetch(end() + 1, 0);
      }
      case "FetchBelowLogStart" -> {
        return fetch(start - 1, 0);
      }
      case "FetchOfLaterEpoch" -> {
        return fetch(start, 1);
      }
      default -> throw new Broker.Refused("nobody sends " + message + " to a leader");
    }
    return Errors.NONE;
  }

  private Errors toFollower(String message) {
    switch (message) {
      case "CorruptBatch" -> process(StorageBroker.corrupt(next(0)));
      case "OverlappingBatch" -> process(next(-1));
      case "DisorderedBatches" -> process(StorageBroker.joined(next(1), next(0)));
      case "LogStartAboveHighWatermark" ->
          broker.process(null, highWatermark(), highWatermark() + 1);
      case "DeleteRecordsOfFollower" -> broker.deleteRecords(0);
      default -> throw new Broker.Refused("nobody sends " + message + " to a follower");
    }
    return Errors.NONE;
  }

  private void process(Object records) {
    broker.process(records, highWatermark(), 0);
  }

  /** A batch of the leader of now, so far behind the log end. */
  private Object next(long further) {
    return broker.batch(end() + further, broker.leaderEpoch());
  }

  /** A consumer asks in an epoch that is so far ahead. */
  private Errors fetch(long offset, int epochsAhead) {
    FetchRequest.PartitionData asked =
        new FetchRequest.PartitionData(
            Metadata.TOPIC_ID,
            offset,
            FetchRequest.INVALID_LOG_START_OFFSET,
            MAX_BYTES,
            Optional.of(broker.leaderEpoch() + epochsAhead));
    Map<TopicPartition, FetchRequest.PartitionData> all = Map.of(View.PARTITION, asked);
    FetchRequest request =
        FetchRequest.Builder.forConsumer(ApiKeys.FETCH.latestVersion(), 0, 1, all).build();
    var answer = Leader.fetch(broker.up(), request, all);
    return Errors.forCode(answer.data().responses().get(0).partitions().get(0).errorCode());
  }

  private long end() {
    return DiskLog.endOffset(broker.log());
  }

  private long highWatermark() {
    return DiskLog.highWatermark(broker.log());
  }
}
