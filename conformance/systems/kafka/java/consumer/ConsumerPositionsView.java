package kconform;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.StringWriter;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.message.FetchRequestData;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.ListOffsetsRequestData;
import org.apache.kafka.common.message.OffsetForLeaderEpochRequestData;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.ListOffsetsRequest;

/** What a reading consumer's objects hold, as JSON. Epochs are 0 where there is none. */
final class ConsumerPositionsView {
  private static final int NO_EPOCH = 0;
  private static final String NONE = "none";

  private final ConsumerPositions positions;
  private final ClassicConsumer client;
  private final JsonGenerator out;

  private ConsumerPositionsView(ConsumerPositions positions, JsonGenerator out) {
    this.positions = positions;
    this.client = positions.client();
    this.out = out;
  }

  static String text(ObjectMapper json, ConsumerPositions positions) throws IOException {
    StringWriter text = new StringWriter();
    try (JsonGenerator out = json.getFactory().createGenerator(text)) {
      out.writeStartArray();
      new ConsumerPositionsView(positions, out).write();
      out.writeEndArray();
    }
    return text.toString();
  }

  private void write() throws IOException {
    out.writeStartArray();
    for (TopicPartition partition : positions.partitions()) {
      writePartition(Kafka.call(client.subscriptions, "assignedStateOrNull", partition));
    }
    out.writeEndArray();
    writeMetadata();
    out.writeBoolean(isOutdated());
    out.writeBoolean((boolean) Kafka.get(client.metadata, "needFullUpdate"));
    writeLookup();
    writeAsked();
    writeBuffer();
    out.writeString(nameOf(failure("cachedResetPositionsException")));
    out.writeString(nameOf(failure("cachedValidatePositionsException")));
    writeConsumed();
    writeRecords();
    out.writeString(nameOf(positions.error()));
  }

  // ---- positions ---------------------------------------------------------------------------

  /** [state, offset, epoch, leader, known, strategy, ms until the next try, paused]. */
  private void writePartition(Object state) throws IOException {
    Object position = state == null ? null : Kafka.get(state, "position");
    Object leader = position == null ? null : Kafka.get(position, "currentLeader");
    out.writeStartArray();
    out.writeString(state == null ? "NONE" : Kafka.get(state, "fetchState").toString());
    out.writeNumber(position == null ? ConsumerPositions.NONE : (long) Kafka.get(position, "offset"));
    out.writeNumber(position == null ? NO_EPOCH : epoch(Kafka.get(position, "offsetEpoch")));
    out.writeNumber(leader == null ? NO_EPOCH : epoch(Kafka.get(leader, "epoch")));
    out.writeBoolean(leader != null && ((Optional<?>) Kafka.get(leader, "leader")).isPresent());
    out.writeString(strategy(state));
    out.writeNumber(retryMs(state));
    out.writeBoolean(state != null && (boolean) Kafka.get(state, "paused"));
    out.writeEndArray();
  }

  private static int epoch(Object maybe) {
    Object epoch = ((Optional<?>) maybe).orElse(null);
    return epoch == null ? NO_EPOCH : (int) epoch;
  }

  private static String strategy(Object state) {
    Object strategy = state == null ? null : Kafka.get(state, "resetStrategy");
    return strategy == null ? NONE : ((String) Kafka.call(strategy, "name")).toLowerCase(Locale.ROOT);
  }

  private long retryMs(Object state) {
    Object next = state == null ? null : Kafka.get(state, "nextRetryTimeMs");
    return next == null ? 0 : (long) next - client.clock.milliseconds();
  }

  /** [the epoch in the cache, the last seen one] of each partition. */
  private void writeMetadata() throws IOException {
    Object snapshot = Kafka.get(client.metadata, "metadataSnapshot");
    out.writeStartArray();
    for (TopicPartition partition : positions.partitions()) {
      Object cached = ((Optional<?>) Kafka.call(snapshot, "partitionMetadata", partition)).orElse(null);
      out.writeStartArray();
      out.writeNumber(cached == null ? NO_EPOCH : epoch(Kafka.get(cached, "leaderEpoch")));
      out.writeNumber(epoch(Kafka.call(client.metadata, "lastSeenLeaderEpoch", partition)));
      out.writeEndArray();
    }
    out.writeEndArray();
  }

  /** OffsetFetcherUtils, or the PositionsValidator that it has from 4.0 on. */
  private Object field(String name) {
    Object utils = Kafka.get(positions.offsetFetcher(), "offsetFetcherUtils");
    return Kafka.get(Kafka.has(utils, name) ? utils : Kafka.get(utils, "positionsValidator"), name);
  }

  private boolean isOutdated() {
    int looked = ((AtomicInteger) field("metadataUpdateVersion")).get();
    return looked != (int) Kafka.call(client.metadata, "updateVersion");
  }

  private Object failure(String name) {
    return ((AtomicReference<?>) field(name)).get();
  }

  /** By Kafka's error code, or by the exception's class if it has none. */
  private static String nameOf(Object error) {
    if (error == null) {
      return NONE;
    }
    return error instanceof ApiException api
        ? Errors.forException(api).name()
        : error.getClass().getSimpleName();
  }

  private void writeConsumed() throws IOException {
    Map<?, ?> consumed = (Map<?, ?>) Kafka.call(client.subscriptions, "allConsumed");
    out.writeStartArray();
    for (TopicPartition partition : positions.partitions()) {
      OffsetAndMetadata position = (OffsetAndMetadata) consumed.get(partition);
      out.writeNumber(position == null ? ConsumerPositions.NONE : position.offset());
    }
    out.writeEndArray();
  }

  // ---- requests ----------------------------------------------------------------------------

  /** [partitions, sent, done, failed or none]. */
  private void writeLookup() throws IOException {
    Object pending = Kafka.get(client.coordinator, "pendingCommittedOffsetRequest");
    out.writeStartArray();
    out.writeStartArray();
    if (pending != null) {
      for (Object partition : Kafka.each(Kafka.get(pending, "requestedPartitions"))) {
        out.writeNumber(((TopicPartition) partition).partition());
      }
    }
    out.writeEndArray();
    out.writeString(pending == null ? NONE : state(Kafka.get(pending, "response")));
    out.writeEndArray();
  }

  private static String state(Object future) {
    if (!(boolean) Kafka.call(future, "isDone")) {
      return "sent";
    }
    return (boolean) Kafka.call(future, "failed") ? "failed" : "done";
  }

  /** [kind, partition, offset, epoch, leader epoch, strategy]. */
  private void writeAsked() throws IOException {
    out.writeStartArray();
    for (ConsumerPositions.Asked asked : positions.asked()) {
      ApiMessage request = asked.flight().body().data();
      out.writeStartArray();
      if (request instanceof ListOffsetsRequestData list) {
        long timestamp = LeaderLog.asked(list).timestamp();
        boolean isEarliest = timestamp == ListOffsetsRequest.EARLIEST_TIMESTAMP;
        writeAsked("list", asked, ConsumerPositions.NONE, NO_EPOCH, isEarliest ? "earliest" : "latest");
      } else if (request instanceof OffsetForLeaderEpochRequestData epochs) {
        writeAsked("epochs", asked, asked.position(), LeaderLog.asked(epochs).leaderEpoch(), NONE);
      } else {
        long offset = LeaderLog.asked((FetchRequestData) request).fetchOffset();
        writeAsked("fetch", asked, offset, NO_EPOCH, NONE);
      }
      out.writeEndArray();
    }
    out.writeEndArray();
  }

  private void writeAsked(
      String kind, ConsumerPositions.Asked asked, long offset, int epoch, String strategy)
      throws IOException {
    out.writeString(kind);
    out.writeNumber(asked.partition());
    out.writeNumber(offset);
    out.writeNumber(epoch);
    out.writeNumber(LeaderLog.askedEpoch(asked.flight().body().data()));
    out.writeString(strategy);
  }

  // ---- records -----------------------------------------------------------------------------

  private void writeBuffer() throws IOException {
    out.writeStartArray();
    for (Object fetch : positions.fetches()) {
      writeFetch(fetch);
    }
    out.writeEndArray();
  }

  /** [partition, offset, the leader epochs of its records, error, initialized]. */
  private void writeFetch(Object fetch) throws IOException {
    FetchResponseData.PartitionData data =
        (FetchResponseData.PartitionData) Kafka.get(fetch, "partitionData");
    long offset = (long) Kafka.get(fetch, "nextFetchOffset");
    out.writeStartArray();
    out.writeNumber(data.partitionIndex());
    out.writeNumber(offset);
    out.writeStartArray();
    for (Object batch : Kafka.each(Kafka.call(Kafka.call(data, "records"), "batches"))) {
      if ((long) Kafka.call(batch, "baseOffset") >= offset) {
        out.writeNumber((int) Kafka.call(batch, "partitionLeaderEpoch"));
      }
    }
    out.writeEndArray();
    out.writeString(Errors.forCode(data.errorCode()).name());
    out.writeBoolean((boolean) Kafka.get(fetch, "initialized"));
    out.writeEndArray();
  }

  private void writeRecords() throws IOException {
    out.writeStartArray();
    for (ConsumerRecord<?, ?> record : positions.records()) {
      out.writeStartArray();
      out.writeNumber(record.partition());
      out.writeNumber(record.offset());
      out.writeEndArray();
    }
    out.writeEndArray();
  }
}
