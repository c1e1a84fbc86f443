package kconform;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.ListOffsetsRequestData.ListOffsetsPartition;
import org.apache.kafka.common.message.ListOffsetsResponseData;
import org.apache.kafka.common.message.ListOffsetsResponseData.ListOffsetsPartitionResponse;
import org.apache.kafka.common.message.ListOffsetsResponseData.ListOffsetsTopicResponse;
import org.apache.kafka.common.message.OffsetForLeaderEpochRequestData.OffsetForLeaderPartition;
import org.apache.kafka.common.message.OffsetForLeaderEpochRequestData.OffsetForLeaderTopic;
import org.apache.kafka.common.message.OffsetForLeaderEpochResponseData;
import org.apache.kafka.common.message.OffsetForLeaderEpochResponseData.OffsetForLeaderTopicResult;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.common.requests.ListOffsetsRequest;
import org.apache.kafka.common.requests.ListOffsetsResponse;
import org.apache.kafka.common.requests.OffsetsForLeaderEpochRequest;
import org.apache.kafka.common.requests.OffsetsForLeaderEpochResponse;

/** What KafkaApis does with a follower's requests, on the leader's ReplicaManager. */
final class Leader {
  private static final int NO_SESSION = 0;

  private Leader() {}

  /** By the specification's names of messages. */
  static String nameOf(AbstractRequest request) {
    if (request instanceof ListOffsetsRequest asked) {
      boolean latest = View.asked(asked).timestamp() == ListOffsetsRequest.LATEST_TIMESTAMP;
      return latest ? "LatestRequest" : "EarliestRequest";
    }
    return request instanceof FetchRequest ? "FetchRequest" : "EpochRequest";
  }

  /** Whatever a follower asks. */
  static AbstractResponse answer(BrokerProcess leader, AbstractRequest request) {
    if (request instanceof FetchRequest fetch) {
      Map<TopicPartition, FetchRequest.PartitionData> asked = new LinkedHashMap<>();
      fetch
          .fetchData(Map.of(Metadata.TOPIC_ID, Metadata.TOPIC))
          .forEach((partition, data) -> asked.put(partition.topicPartition(), data));
      return fetch(leader, fetch, asked);
    }
    if (request instanceof ListOffsetsRequest listOffsets) {
      return listOffsets(leader, listOffsets);
    }
    OffsetsForLeaderEpochRequest epochs = (OffsetsForLeaderEpochRequest) request;
    return epochEndOffsets(leader, epochs.data().topics().iterator().next().partitions().get(0));
  }

  /** handleFetchRequest without sessions: what is asked for is told by the partitions. */
  static FetchResponse fetch(
      BrokerProcess leader, FetchRequest request, Map<TopicPartition, FetchRequest.PartitionData> asked) {
    List<scala.Tuple2<TopicIdPartition, FetchRequest.PartitionData>> partitions = new ArrayList<>();
    asked.forEach(
        (partition, data) ->
            partitions.add(new scala.Tuple2<>(new TopicIdPartition(Metadata.TOPIC_ID, partition), data)));
    FetchResponseData.FetchableTopicResponse answer =
        new FetchResponseData.FetchableTopicResponse()
            .setTopic(Metadata.TOPIC)
            .setTopicId(Metadata.TOPIC_ID);
    scala.Function1<Object, Object> callback =
        read -> {
          for (Object each : Kafka.each(read)) {
            scala.Tuple2<?, ?> pair = (scala.Tuple2<?, ?>) each;
            answer.partitions().add(answered((TopicIdPartition) pair._1(), pair._2()));
          }
          return scala.runtime.BoxedUnit.UNIT;
        };
    Kafka.call(
        leader.replicaManager, "fetchMessages", parameters(request), partitions, Fetcher.unthrottled(), callback);
    if (answer.partitions().isEmpty()) {
      throw new IllegalStateException("the fetch was not answered at once");
    }
    FetchResponseData data = new FetchResponseData().setSessionId(NO_SESSION);
    data.responses().add(answer);
    return (FetchResponse) Kafka.make(FetchResponse.class, data);
  }

  private static Object parameters(FetchRequest request) {
    Object isolation = Kafka.callStatic(Kafka.type("FetchIsolation"), "of", request);
    Class<?> type = Kafka.type("FetchParams");
    long epoch = request.replicaEpoch();
    Object[] known = {request.replicaId(), epoch, 0L, 1, request.maxBytes(), isolation, Optional.empty()};
    boolean hasVersion = type.getDeclaredConstructors()[0].getParameterTypes()[0] == short.class;
    if (!hasVersion) {
      return Kafka.make(type, known);
    }
    List<Object> all = new ArrayList<>(List.of(request.version()));
    all.addAll(List.of(known));
    return Kafka.make(type, all.toArray());
  }

  private static FetchResponseData.PartitionData answered(TopicIdPartition partition, Object read) {
    FetchResponseData.PartitionData data =
        new FetchResponseData.PartitionData()
            .setPartitionIndex(partition.partition())
            .setErrorCode(((Errors) Kafka.get(read, "error")).code())
            .setHighWatermark((long) Kafka.get(read, "highWatermark"))
            .setLogStartOffset((long) Kafka.get(read, "logStartOffset"));
    Kafka.call(data, "setRecords", View.inMemory(Kafka.get(read, "records")));
    Object diverging = Kafka.orNull(Kafka.get(read, "divergingEpoch"));
    if (diverging != null) {
      data.setDivergingEpoch((FetchResponseData.EpochEndOffset) diverging);
    }
    return data;
  }

  /** handleOffsetForLeaderEpochRequest. */
  static OffsetsForLeaderEpochResponse epochEndOffsets(BrokerProcess leader, OffsetForLeaderPartition asked) {
    OffsetForLeaderTopic topic = new OffsetForLeaderTopic().setTopic(Metadata.TOPIC);
    topic.partitions().add(asked.duplicate());
    Object results = Kafka.call(leader.replicaManager, "lastOffsetForLeaderEpoch", List.of(topic));
    OffsetForLeaderEpochResponseData data = new OffsetForLeaderEpochResponseData();
    for (Object result : Kafka.each(results)) {
      data.topics().add((OffsetForLeaderTopicResult) result);
    }
    return new OffsetsForLeaderEpochResponse(data);
  }

  /** handleListOffsetRequest, for a follower: without isolation, of the leader only. */
  static ListOffsetsResponse listOffsets(BrokerProcess leader, ListOffsetsRequest request) {
    ListOffsetsPartition asked = View.asked(request);
    ListOffsetsPartitionResponse answer =
        new ListOffsetsPartitionResponse().setPartitionIndex(asked.partitionIndex());
    try {
      Object found =
          Kafka.call(
              leader.replicaManager,
              "fetchOffsetForTimestamp",
              View.PARTITION,
              asked.timestamp(),
              Optional.empty(),
              Optional.of(asked.currentLeaderEpoch()),
              true);
      Object offset = timestampAndOffset(Kafka.orNull(found));
      answer.setErrorCode(Errors.NONE.code()).setOffset((long) Kafka.get(offset, "offset"));
      Object epoch = Kafka.orNull(Kafka.get(offset, "leaderEpoch"));
      if (epoch != null) {
        answer.setLeaderEpoch((int) epoch);
      }
    } catch (org.apache.kafka.common.errors.ApiException error) {
      answer.setErrorCode(Errors.forException(error).code());
    }
    ListOffsetsTopicResponse topic = new ListOffsetsTopicResponse().setName(Metadata.TOPIC);
    topic.partitions().add(answer);
    ListOffsetsResponseData data = new ListOffsetsResponseData();
    data.topics().add(topic);
    return new ListOffsetsResponse(data);
  }

  /** From 4.0 on the answer is wrapped in an OffsetResultHolder. */
  private static Object timestampAndOffset(Object found) {
    return found.getClass().getSimpleName().equals("OffsetResultHolder")
        ? Kafka.orNull(Kafka.call(found, "timestampAndOffsetOpt"))
        : found;
  }
}
