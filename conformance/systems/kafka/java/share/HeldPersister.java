package kconform;

import com.fasterxml.jackson.core.JsonGenerator;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.protocol.Errors;

/** A persister that answers reads at once, and a write when the harness says so. */
final class HeldPersister {
  private static final String PACKAGE = "org.apache.kafka.server.share.persister.";
  private static final Class<?> FACTORY = Kafka.type(PACKAGE + "PartitionFactory");

  /** A write under way. `request` waits for it; null: nobody does, a lock has expired. */
  record Write(List<?> batches, CompletableFuture<?> request, CompletableFuture<Object> future) {}

  private final TopicIdPartition partition;
  private final List<Write> writes = new ArrayList<>();

  HeldPersister(TopicIdPartition partition) {
    this.partition = partition;
  }

  Object play(Class<?> type) {
    return Kafka.play(
        type,
        (proxy, method, arguments) ->
            switch (method.getName()) {
              case "readState" -> CompletableFuture.completedFuture(empty());
              case "writeState" -> write(arguments[0]);
              default -> throw new Kafka.Unsupported("a share partition calls " + method);
            });
  }

  private Object write(Object parameters) {
    Object topic = ((List<?>) Kafka.call(data(parameters), "topicsData")).get(0);
    Object state = ((List<?>) Kafka.call(topic, "partitions")).get(0);
    Write write =
        new Write((List<?>) Kafka.call(state, "stateBatches"), null, new CompletableFuture<>());
    writes.add(write);
    return write.future;
  }

  private static Object data(Object parameters) {
    return Kafka.call(parameters, "groupTopicPartitionData");
  }

  int size() {
    return writes.size();
  }

  /** Somebody waits for the newest write. */
  void belongsTo(CompletableFuture<?> request) {
    Write newest = writes.remove(writes.size() - 1);
    writes.add(new Write(newest.batches, request, newest.future));
  }

  /** Answers a write, the oldest being number 1. */
  Write complete(int number, boolean ok) {
    if (number > writes.size()) {
      throw new Broker.Refused("no write " + number + " is under way");
    }
    Write write = writes.remove(number - 1);
    short error = (ok ? Errors.NONE : Errors.COORDINATOR_NOT_AVAILABLE).code();
    write.future.complete(
        result(
            "WriteShareGroupStateResult",
            Kafka.callStatic(FACTORY, "newPartitionErrorData", partition.partition(), error, "")));
    return write;
  }

  /** The state of a group that has begun at the start of the log. */
  private Object empty() {
    return result(
        "ReadShareGroupStateResult",
        Kafka.callStatic(
            FACTORY,
            "newPartitionAllData",
            partition.partition(),
            0,
            0L,
            Errors.NONE.code(),
            "",
            List.of()));
  }

  private Object result(String type, Object data) {
    Object topic =
        Kafka.make(Kafka.type(PACKAGE + "TopicData"), partition.topicId(), List.of(data));
    Object builder = Kafka.make(Kafka.type(PACKAGE + type + "$Builder"));
    return Kafka.call(Kafka.call(builder, "setTopicsData", List.of(topic)), "build");
  }

  void write(JsonGenerator out) throws IOException {
    out.writeStartArray();
    for (Write write : writes) {
      out.writeStartArray();
      out.writeString(write.request == null ? "timeout" : "ack");
      out.writeStartArray();
      for (Object batch : write.batches) {
        batch(out, batch);
      }
      out.writeEndArray();
      out.writeEndArray();
    }
    out.writeEndArray();
  }

  private static void batch(JsonGenerator out, Object batch) throws IOException {
    long last = Kafka.number(Kafka.call(batch, "lastOffset"));
    for (long at = Kafka.number(Kafka.call(batch, "firstOffset")); at <= last; at++) {
      out.writeStartArray();
      out.writeNumber(at);
      out.writeString(
          switch (Kafka.integer(Kafka.call(batch, "deliveryState"))) {
            case 0 -> "AVAILABLE";
            case 2 -> "ACKNOWLEDGED";
            default -> "ARCHIVED";
          });
      out.writeNumber(Kafka.integer(Kafka.call(batch, "deliveryCount")));
      out.writeEndArray();
    }
  }
}
