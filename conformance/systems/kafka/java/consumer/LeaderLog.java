package kconform;

import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.FetchRequestData;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.ListOffsetsRequestData;
import org.apache.kafka.common.message.ListOffsetsResponseData;
import org.apache.kafka.common.message.OffsetForLeaderEpochRequestData;
import org.apache.kafka.common.message.OffsetForLeaderEpochResponseData;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.ListOffsetsRequest;

/** The leader of one partition: the leader epochs of its records, and its own. */
final class LeaderLog {
  private static final int NONE = -1;

  private final TopicPartition partition;
  private final Uuid topicId;
  private final int maxFetch;
  private final List<Integer> log;
  private int epoch;

  LeaderLog(TopicPartition partition, Uuid topicId, List<Integer> log, int epoch, int maxFetch) {
    this.partition = partition;
    this.topicId = topicId;
    this.log = new ArrayList<>(log);
    this.epoch = epoch;
    this.maxFetch = maxFetch;
  }

  int epoch() {
    return epoch;
  }

  void append() {
    log.add(epoch);
  }

  /** A new leader, which has only so many of the records. */
  void elect(int kept) {
    log.subList(kept, log.size()).clear();
    epoch++;
  }

  /** What it answers to a request. One of another leader epoch is fenced. */
  ApiMessage answer(ApiMessage request) {
    if (askedEpoch(request) != epoch) {
      return failure(request, Errors.FENCED_LEADER_EPOCH);
    }
    if (request instanceof ListOffsetsRequestData list) {
      long timestamp = asked(list).timestamp();
      return listed(Errors.NONE, timestamp == ListOffsetsRequest.EARLIEST_TIMESTAMP ? 0 : log.size());
    }
    if (request instanceof OffsetForLeaderEpochRequestData epochs) {
      return end(asked(epochs).leaderEpoch());
    }
    return fetched((int) asked((FetchRequestData) request).fetchOffset());
  }

  /** A request fails. */
  ApiMessage failure(ApiMessage request, Errors error) {
    if (request instanceof ListOffsetsRequestData) {
      return listed(error, NONE);
    }
    if (request instanceof OffsetForLeaderEpochRequestData) {
      return endOffset(error, NONE, NONE);
    }
    return fetched(error, 0, List.of());
  }

  static int askedEpoch(ApiMessage request) {
    if (request instanceof ListOffsetsRequestData list) {
      return asked(list).currentLeaderEpoch();
    }
    return request instanceof OffsetForLeaderEpochRequestData epochs
        ? asked(epochs).currentLeaderEpoch()
        : asked((FetchRequestData) request).currentLeaderEpoch();
  }

  static ListOffsetsRequestData.ListOffsetsPartition asked(ListOffsetsRequestData request) {
    return only(only(request.topics()).partitions());
  }

  static OffsetForLeaderEpochRequestData.OffsetForLeaderPartition asked(
      OffsetForLeaderEpochRequestData request) {
    return only(only(request.topics()).partitions());
  }

  static FetchRequestData.FetchPartition asked(FetchRequestData request) {
    return only(only(request.topics()).partitions());
  }

  /** Each leader leads one partition. */
  private static <T> T only(Iterable<T> all) {
    var each = all.iterator();
    T first = each.next();
    if (each.hasNext()) {
      throw new IllegalStateException("a leader is asked for another's partition, too: " + all);
    }
    return first;
  }

  // ---- answers -----------------------------------------------------------------------------

  private ApiMessage listed(Errors error, long offset) {
    return new ListOffsetsResponseData()
        .setTopics(
            List.of(
                new ListOffsetsResponseData.ListOffsetsTopicResponse()
                    .setName(partition.topic())
                    .setPartitions(
                        List.of(
                            new ListOffsetsResponseData.ListOffsetsPartitionResponse()
                                .setPartitionIndex(partition.partition())
                                .setErrorCode(error.code())
                                .setOffset(offset)
                                .setLeaderEpoch(error == Errors.NONE ? epoch : NONE)))));
  }

  /** The greatest epoch up to the one asked for, and where it ends. */
  private ApiMessage end(int asked) {
    int known = epoch <= asked ? epoch : NONE;
    for (int of : log) {
      known = of <= asked ? Math.max(known, of) : known;
    }
    int found = known;
    long end = log.stream().filter(of -> of <= found).count();
    return endOffset(Errors.NONE, found, found == NONE ? NONE : end);
  }

  private ApiMessage endOffset(Errors error, int of, long end) {
    OffsetForLeaderEpochResponseData answer = new OffsetForLeaderEpochResponseData();
    answer
        .topics()
        .add(
            new OffsetForLeaderEpochResponseData.OffsetForLeaderTopicResult()
                .setTopic(partition.topic())
                .setPartitions(
                    List.of(
                        new OffsetForLeaderEpochResponseData.EpochEndOffset()
                            .setPartition(partition.partition())
                            .setErrorCode(error.code())
                            .setLeaderEpoch(of)
                            .setEndOffset(end))));
    return answer;
  }

  private ApiMessage fetched(int offset) {
    if (offset > log.size()) {
      return fetched(Errors.OFFSET_OUT_OF_RANGE, offset, List.of());
    }
    int end = Math.min(offset + maxFetch, log.size());
    return fetched(Errors.NONE, offset, List.copyOf(log.subList(offset, end)));
  }

  private ApiMessage fetched(Errors error, int offset, List<Integer> epochs) {
    FetchResponseData.PartitionData data =
        new FetchResponseData.PartitionData()
            .setPartitionIndex(partition.partition())
            .setErrorCode(error.code())
            .setHighWatermark(log.size())
            .setLastStableOffset(log.size())
            .setLogStartOffset(0);
    Kafka.call(data, "setRecords", Records.ofEpochs(offset, epochs));
    return new FetchResponseData()
        .setResponses(
            List.of(
                new FetchResponseData.FetchableTopicResponse()
                    .setTopic(partition.topic())
                    .setTopicId(topicId)
                    .setPartitions(List.of(data))));
  }
}
