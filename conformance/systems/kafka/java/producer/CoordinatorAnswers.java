package kconform;

import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.AddOffsetsToTxnResponseData;
import org.apache.kafka.common.message.AddPartitionsToTxnResponseData;
import org.apache.kafka.common.message.AddPartitionsToTxnResponseData.AddPartitionsToTxnPartitionResult;
import org.apache.kafka.common.message.AddPartitionsToTxnResponseData.AddPartitionsToTxnPartitionResultCollection;
import org.apache.kafka.common.message.AddPartitionsToTxnResponseData.AddPartitionsToTxnTopicResult;
import org.apache.kafka.common.message.AddPartitionsToTxnResponseData.AddPartitionsToTxnTopicResultCollection;
import org.apache.kafka.common.message.EndTxnResponseData;
import org.apache.kafka.common.message.InitProducerIdResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.AddOffsetsToTxnResponse;
import org.apache.kafka.common.requests.AddPartitionsToTxnResponse;
import org.apache.kafka.common.requests.EndTxnResponse;
import org.apache.kafka.common.requests.FindCoordinatorResponse;
import org.apache.kafka.common.requests.InitProducerIdResponse;
import org.apache.kafka.common.requests.TxnOffsetCommitResponse;

/** What a coordinator answers to a transactional producer. */
record CoordinatorAnswers(TopicPartition partition, boolean version2) {
  static final Node NODE = new Node(1, "coordinator", 9092);
  private static final long PRODUCER_ID = 7;
  private static final int NOT_THROTTLED = 0;

  /** The answer to a request; where it gives an identity, its epoch is the next one. */
  AbstractResponse to(ApiKeys request, Errors error, short nextEpoch) {
    short code = error.code();
    boolean identifies = error == Errors.NONE;
    return switch (request) {
      case INIT_PRODUCER_ID -> {
        InitProducerIdResponseData data = new InitProducerIdResponseData().setErrorCode(code);
        yield new InitProducerIdResponse(
            identifies ? data.setProducerId(PRODUCER_ID).setProducerEpoch(nextEpoch) : data);
      }
      case ADD_PARTITIONS_TO_TXN -> added(code);
      case ADD_OFFSETS_TO_TXN ->
          new AddOffsetsToTxnResponse(new AddOffsetsToTxnResponseData().setErrorCode(code));
      case TXN_OFFSET_COMMIT -> new TxnOffsetCommitResponse(NOT_THROTTLED, Map.of(partition, error));
      case END_TXN -> {
        EndTxnResponseData data = new EndTxnResponseData().setErrorCode(code);
        yield new EndTxnResponse(identifies && version2 ? withIdentity(data, nextEpoch) : data);
      }
      default -> throw new IllegalArgumentException(request + " is not answered here");
    };
  }

  /** From 4.0 on the answer has these fields. */
  private static EndTxnResponseData withIdentity(EndTxnResponseData data, short epoch) {
    Kafka.call(data, "setProducerId", PRODUCER_ID);
    Kafka.call(data, "setProducerEpoch", epoch);
    return data;
  }

  private AbstractResponse added(short code) {
    AddPartitionsToTxnPartitionResult result =
        new AddPartitionsToTxnPartitionResult()
            .setPartitionIndex(partition.partition())
            .setPartitionErrorCode(code);
    AddPartitionsToTxnTopicResult topic =
        new AddPartitionsToTxnTopicResult()
            .setName(partition.topic())
            .setResultsByPartition(
                new AddPartitionsToTxnPartitionResultCollection(List.of(result).iterator()));
    return new AddPartitionsToTxnResponse(
        new AddPartitionsToTxnResponseData()
            .setResultsByTopicV3AndBelow(
                new AddPartitionsToTxnTopicResultCollection(List.of(topic).iterator())));
  }

  /** Every coordinator is on the same broker. */
  static AbstractResponse found(String key) {
    return FindCoordinatorResponse.prepareResponse(Errors.NONE, key, NODE);
  }
}
