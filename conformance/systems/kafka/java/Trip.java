package kconform;

import com.fasterxml.jackson.core.JsonGenerator;
import java.io.IOException;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.ListOffsetsRequestData.ListOffsetsPartition;
import org.apache.kafka.common.message.ListOffsetsResponseData.ListOffsetsPartitionResponse;
import org.apache.kafka.common.message.OffsetForLeaderEpochRequestData.OffsetForLeaderPartition;
import org.apache.kafka.common.message.OffsetForLeaderEpochResponseData.EpochEndOffset;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.common.requests.ListOffsetsRequest;
import org.apache.kafka.common.requests.ListOffsetsResponse;
import org.apache.kafka.common.requests.OffsetsForLeaderEpochResponse;

/** A follower's one round trip: the request in flight, and the answer once the leader has given it. */
abstract sealed class Trip {
  final Fetcher fetcher;

  private Trip(Fetcher fetcher) {
    this.fetcher = fetcher;
  }

  /** The request as it goes out: a fetch with the broker epoch, at whatever metadata version. */
  static AbstractRequest asSent(AbstractRequest.Builder<?> builder) {
    return builder instanceof FetchRequest.Builder fetch ? Fetch.request(fetch) : builder.build();
  }

  /** Lets the leader answer. */
  abstract void handle(BrokerProcess leader);

  abstract boolean isAnswered();

  /** Gives the fetcher thread the answer, or an error if it is lost; the next round trip or null. */
  abstract Trip process(boolean lost) throws InterruptedException;

  /** Writes [type, leader, leader epoch, broker epoch, fetch offset, last epoch, error, epoch, end
   * offset, records, high watermark, log start offset]. */
  abstract void write(JsonGenerator out) throws IOException;

  final void write(JsonGenerator out, Message message) throws IOException {
    out.writeStartArray();
    out.writeString(message.type);
    out.writeNumber(fetcher.leader);
    out.writeNumber(message.currentLeaderEpoch);
    out.writeNumber(message.brokerEpoch);
    out.writeNumber(message.fetchOffset);
    out.writeNumber(message.lastEpoch);
    out.writeString(message.error);
    out.writeNumber(message.epoch);
    out.writeNumber(message.endOffset);
    View.integers(out, message.records);
    out.writeNumber(message.highWatermark);
    out.writeNumber(message.logStartOffset);
    out.writeEndArray();
  }

  /** The fields of the specification's messages; one that a message lacks has this value. */
  static final class Message {
    final String type;
    int currentLeaderEpoch = -1;
    long brokerEpoch;
    long fetchOffset;
    int lastEpoch = -1;
    String error = "NONE";
    int epoch = -1;
    long endOffset = -1;
    java.util.List<Integer> records = java.util.List.of();
    long highWatermark;
    long logStartOffset;

    Message(String type) {
      this.type = type;
    }
  }

  // ---- Fetch -------------------------------------------------------------------------------

  static final class Fetch extends Trip {
    private static final int WITH_BROKER_EPOCH = 15;
    private final Object built;
    private final FetchRequest request;
    private final Map<TopicPartition, FetchRequest.PartitionData> asked;
    private FetchResponse response;

    @SuppressWarnings("unchecked")
    Fetch(Fetcher fetcher, Object built) {
      super(fetcher);
      this.built = built;
      this.request = request((FetchRequest.Builder) Kafka.call(built, "fetchRequest"));
      this.asked = (Map<TopicPartition, FetchRequest.PartitionData>) Kafka.call(built, "partitionData");
    }

    /** At metadata version 2.6 too with the broker epoch (KIP-903), as the specification has it. */
    private static FetchRequest request(FetchRequest.Builder builder) {
      return builder.build((short) Math.max(builder.latestAllowedVersion(), WITH_BROKER_EPOCH));
    }

    @Override
    void handle(BrokerProcess leader) {
      response = Leader.fetch(leader, request, asked);
    }

    @Override
    boolean isAnswered() {
      return response != null;
    }

    @Override
    Trip process(boolean lost) throws InterruptedException {
      if (lost || error() != Errors.OFFSET_OUT_OF_RANGE) {
        fetcher.processFetchRequest(built, lost ? null : response);
        return null;
      }
      return ListOffsets.of(fetcher, leaderEpoch(), fetcher.processUntilAsked(built, response));
    }

    private int leaderEpoch() {
      return asked.get(View.PARTITION).currentLeaderEpoch.orElse(-1);
    }

    private FetchResponseData.PartitionData data() {
      return response.data().responses().get(0).partitions().get(0);
    }

    private Errors error() {
      return Errors.forCode(data().errorCode());
    }

    @Override
    void write(JsonGenerator out) throws IOException {
      FetchRequest.PartitionData sent = asked.get(View.PARTITION);
      Message message = new Message(response == null ? "FetchRequest" : "FetchResponse");
      message.currentLeaderEpoch = leaderEpoch();
      message.fetchOffset = sent.fetchOffset;
      if (response == null) {
        message.brokerEpoch = fetcher.follower.epoch;
        message.lastEpoch = sent.lastFetchedEpoch.orElse(-1);
      } else {
        answer(message);
      }
      write(out, message);
    }

    private void answer(Message message) {
      FetchResponseData.PartitionData data = data();
      message.error = error().name();
      if (error() != Errors.NONE) {
        return;
      }
      if (FetchResponse.isDivergingEpoch(data)) { // its other fields are not read by a follower
        message.epoch = data.divergingEpoch().epoch();
        message.endOffset = data.divergingEpoch().endOffset();
        return;
      }
      message.records = new java.util.ArrayList<>();
      for (Object batch : Kafka.each(Kafka.call(Kafka.call(data, "records"), "batches"))) {
        message.records.add((int) Kafka.call(batch, "partitionLeaderEpoch"));
      }
      message.highWatermark = data.highWatermark();
      message.logStartOffset = data.logStartOffset();
    }
  }

  // ---- OffsetsForLeaderEpoch -----------------------------------------------------------------

  static final class Epoch extends Trip {
    private final Object partitions;
    private final OffsetForLeaderPartition asked;
    private OffsetsForLeaderEpochResponse response;

    Epoch(Fetcher fetcher, Object partitions) {
      super(fetcher);
      this.partitions = partitions;
      this.asked = (OffsetForLeaderPartition) Kafka.orNull(Kafka.call(partitions, "get", View.PARTITION));
    }

    @Override
    void handle(BrokerProcess leader) {
      response = Leader.epochEndOffsets(leader, asked);
    }

    @Override
    boolean isAnswered() {
      return response != null;
    }

    @Override
    Trip process(boolean lost) {
      fetcher.truncateToEpochEndOffsets(partitions, lost ? null : response);
      return null;
    }

    @Override
    void write(JsonGenerator out) throws IOException {
      Message message = new Message(response == null ? "EpochRequest" : "EpochResponse");
      message.currentLeaderEpoch = asked.currentLeaderEpoch();
      if (response == null) {
        message.brokerEpoch = fetcher.follower.epoch;
        message.lastEpoch = asked.leaderEpoch();
      } else {
        EpochEndOffset end = response.data().topics().iterator().next().partitions().get(0);
        message.error = Errors.forCode(end.errorCode()).name();
        message.epoch = end.leaderEpoch();
        message.endOffset = end.endOffset();
      }
      write(out, message);
    }
  }

  // ---- ListOffsets -------------------------------------------------------------------------

  /** Within the out-of-range reset: the fetcher thread waits, its lock held. */
  static final class ListOffsets extends Trip {
    private final int fetchEpoch;
    private final ListOffsetsRequest request;
    private ListOffsetsResponse response;

    private ListOffsets(Fetcher fetcher, int fetchEpoch, ListOffsetsRequest request) {
      super(fetcher);
      this.fetchEpoch = fetchEpoch;
      this.request = request;
    }

    /** What is asked amid the handling of a fetch of this leader epoch; null: nothing. */
    static Trip of(Fetcher fetcher, int fetchEpoch, Fetcher.Asked asked) {
      return asked == null ? null : new ListOffsets(fetcher, fetchEpoch, asked.request());
    }

    @Override
    void handle(BrokerProcess leader) {
      response = Leader.listOffsets(leader, request);
    }

    @Override
    boolean isAnswered() {
      return response != null;
    }

    @Override
    Trip process(boolean lost) throws InterruptedException {
      return of(fetcher, fetchEpoch, fetcher.resume(lost ? null : response));
    }

    @Override
    void write(JsonGenerator out) throws IOException {
      ListOffsetsPartition sent = View.asked(request);
      String kind = sent.timestamp() == ListOffsetsRequest.LATEST_TIMESTAMP ? "Latest" : "Earliest";
      Message message = new Message(kind + (response == null ? "Request" : "Response"));
      message.currentLeaderEpoch = sent.currentLeaderEpoch();
      message.lastEpoch = fetchEpoch;
      if (response == null) {
        message.brokerEpoch = fetcher.follower.epoch;
      } else {
        ListOffsetsPartitionResponse answer = response.topics().get(0).partitions().get(0);
        message.error = Errors.forCode(answer.errorCode()).name();
        message.endOffset = answer.offset();
      }
      write(out, message);
    }
  }
}
