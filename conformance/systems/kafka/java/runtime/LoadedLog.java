package kconform;

import java.io.File;
import java.lang.reflect.Type;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.TopicPartition;

/** A log on disk that has what a broker's partition has, for as long as CoordinatorLoaderImpl reads it. */
final class LoadedLog {
  /** What the loader is asked for where the broker leads no longer: it finds no log. */
  private static final TopicPartition NOT_LED = new TopicPartition("not-led", 0);

  private final OffsetsTopic topic;
  private final Object loader;
  private List<LedPartition.Batch> contents = List.of();

  /** Says what the log's records are. */
  ShardKind kind;

  LoadedLog(File folder) {
    topic = new OffsetsTopic(folder);
    loader = CoordinatorLoaders.over(topic.process, deserializer());
  }

  private Object deserializer() {
    return Kafka.play(
        Kafka.type("org.apache.kafka.coordinator.common.runtime.Deserializer"),
        (proxy, method, arguments) ->
            kind.record((ByteBuffer) arguments[0], (ByteBuffer) arguments[1]));
  }

  OffsetsTopic topic() {
    return topic;
  }

  /** CoordinatorLoaderImpl.load. */
  @SuppressWarnings("unchecked")
  CompletableFuture<Object> load(LedPartition partition, Object playback) {
    fill(partition.batches());
    Kafka.call(topic.log(), "updateHighWatermark", partition.highWatermark());
    TopicPartition read = partition.leads() ? OffsetsTopic.PARTITION : NOT_LED;
    return (CompletableFuture<Object>) Kafka.call(loader, "load", read, playback);
  }

  private void fill(List<LedPartition.Batch> batches) {
    if (batches.equals(contents)) {
      return;
    }
    topic.reset();
    contents = List.copyOf(batches);
    for (LedPartition.Batch batch : contents) {
      Kafka.wireCall(topic.log(), "appendAsFollower", type -> argument(type, batch));
    }
  }

  private static Object argument(Type type, LedPartition.Batch batch) {
    return Kafka.raw(type) == int.class ? (Object) batch.epoch() : batch.records();
  }
}
